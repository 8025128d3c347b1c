"""Shared definitions of the verbs' modules."""

from typing import Annotated, Any

import typer

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
        "Bool that is true while people speak.",
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
