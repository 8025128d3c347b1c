"""Shared definitions of the verbs' modules."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import typer
from typer.core import TyperGroup
from typer.main import get_command

# The extra that brings each part.
PARTS = {"sim_replays": "bench", "study_desk": "study"}


class VerbsOnDemand(TyperGroup):
    """A group that imports its verbs on demand. Any stands for click's types, which typer may vendor."""

    modules: ClassVar[Mapping[str, str]]  # by verb: each has the verb as `app`

    def list_commands(self, ctx: Any) -> list[str]:
        """List the verbs in the order of the help page, without importing them."""
        return list(self.modules)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a verb's module and return its command, or None for an unknown verb."""
        if cmd_name not in self.modules:
            return None
        command = get_command(import_module(self.modules[cmd_name]).app)
        command.name = cmd_name
        return command


BagPath = Annotated[Path, typer.Argument(metavar="BAG", help="Folder of a rosbag2 bag, or one .mcap or .db3 file.")]
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
        help="Topic or action with the robot's speech: words, captions, TTS, a Bool that is true while it speaks, or "
        "audio; default: topics of RobotSpeech. Repeatable.",
    ),
]

WordsTopics = Annotated[
    list[str] | None,
    typer.Option(
        "--words-topic",
        metavar="TOPIC",
        help="Topic with people's words from the robot's own recognizer, instead of the sound; repeat it for a "
        "Bool that is true while people speak. Or the namespace of humans (REP-155), for all voices.",
    ),
]

RobotOffset = Annotated[
    int, typer.Option(min=-2000, max=2000, help="Milliseconds to add to the stamps of robot speech.")
]

Command = Callable[..., Any]


def with_options(command: Command) -> Command:
    """Let a command take dataclasses: each field is an option, or an argument, of the field's own name."""
    parameters, groups = list[Parameter](), dict[str, type[Any]]()
    for parameter in signature(command, eval_str=True).parameters.values():
        if is_dataclass(group := parameter.annotation) and isinstance(group, type):
            groups[parameter.name] = group
            types = get_type_hints(group, include_extras=True)
            parameters += [
                Parameter(part.name, Parameter.KEYWORD_ONLY, default=part.default, annotation=types[part.name])
                for part in fields(group)
            ]
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def call(**values: Any) -> Any:
        for name, group in groups.items():
            values[name] = group(**{part.name: values.pop(part.name) for part in fields(group)})
        return command(**values)

    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del call.__wrapped__
    return call


_SETTINGS = {"help_option_names": ["-h", "--help"]}


def make_app(**context_settings: Any) -> typer.Typer:
    """Create the app of a verb that is one command."""
    return typer.Typer(context_settings={**_SETTINGS, **context_settings}, rich_markup_mode=None, add_completion=False)


def make_group(about: str) -> typer.Typer:
    """Create the app of a verb that is a group of commands."""
    return typer.Typer(
        context_settings=_SETTINGS, rich_markup_mode=None, add_completion=False, no_args_is_help=True, help=about
    )
