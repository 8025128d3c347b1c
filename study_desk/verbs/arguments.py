"""Arguments that several verbs of `tactful study` share."""

from pathlib import Path
from typing import Annotated

import typer

LogPath = Annotated[Path, typer.Argument(metavar="LOG", help="Folder of a study log.")]
StudyPath = Annotated[Path, typer.Argument(metavar="STUDY", help="Folder of a study.")]

Media = Annotated[
    list[str] | None,
    typer.Option(
        "--media",
        metavar="FILE[=SECONDS]",
        help="Video or sound file for coders, and how far into it the session begins. Repeatable.",
    ),
]
