"""Shared definitions of the verbs' modules."""

from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_command


class VerbsOnDemand(TyperGroup):
    """A group that imports its verbs on demand. Any stands for click's types, which typer may vendor."""

    modules: ClassVar[Mapping[str, str]]  # by verb, below tactful_cli: each has the verb as `app`

    def list_commands(self, ctx: Any) -> list[str]:
        """List the verbs in the order of the help page, without importing them."""
        return list(self.modules)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a verb's module and return its command, or None for an unknown verb."""
        if cmd_name not in self.modules:
            return None
        command = get_command(import_module(f"tactful_cli.{self.modules[cmd_name]}").app)
        command.name = cmd_name
        return command


AsJson = Annotated[bool, typer.Option("--json", help="Print only JSON.")]
Language = Annotated[
    str, typer.Option(help="Language code of the speech, such as en; en,zh to detect one of them; auto to detect any.")
]
WHISPER_HELP = "Whisper model such as whisper-base, or the folder of one for CTranslate2; default: whisper-tiny-en."
WhisperModel = Annotated[str, typer.Option(help=WHISPER_HELP)]

RobotTopics = Annotated[
    list[str] | None,
    typer.Option(
        "--robot-topic",
        metavar="TOPIC",
        help="Topic or action that tells what or when the robot speaks: its words, captions, TTS, a Bool, or its own "
        "audio; default: topics of RobotSpeech. Repeatable.",
    ),
]

WordsTopics = Annotated[
    list[str] | None,
    typer.Option(
        "--words-topic",
        metavar="TOPIC",
        help="Topic with people's words from a recognizer of the robot's own, in place of the sound; repeated for a "
        "Bool that is true while people speak. Or the namespace of humans (REP-155), for all voices.",
    ),
]

TopicRules = Annotated[
    list[str] | None,
    typer.Option(
        "--map", metavar="FROM=TO", help="Read topic FROM as TO; /robot1/=/ reads all topics below. Repeatable."
    ),
]

SensorOffsetsName = Annotated[
    str,
    typer.Option(
        "--sensor-offsets",
        metavar="NAME|FILE",
        help="Offsets of `calibrate sensors --write`, which move the camera's and the robot's stamps.",
    ),
]

_SETTINGS = {"help_option_names": ["-h", "--help"]}


def single(**context_settings: Any) -> typer.Typer:
    """Create the app of a verb that is one command."""
    return typer.Typer(context_settings={**_SETTINGS, **context_settings}, rich_markup_mode=None, add_completion=False)


def group(about: str) -> typer.Typer:
    """Create the app of a verb that is a group of commands."""
    return typer.Typer(
        context_settings=_SETTINGS, rich_markup_mode=None, add_completion=False, no_args_is_help=True, help=about
    )
