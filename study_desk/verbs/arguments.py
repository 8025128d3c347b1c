"""The argument that several verbs of `tactful study` share."""

from pathlib import Path
from typing import Annotated

import typer

StudyPath = Annotated[Path, typer.Argument(metavar="STUDY", help="Folder of a study.")]
