"""The arguments and progress bars that the verbs of `tactful bag` share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from study_desk.privacy.topic_treatments import NoFacePolicy
from tactful_cli.console import err

BagPath = Annotated[Path, typer.Argument(metavar="BAG", help="Folder of a rosbag2 bag, or one .mcap or .db3 file.")]
MadePath = Annotated[Path, typer.Argument(metavar="OUT", help="New folder to write; must not exist.")]
NoFace = Annotated[
    NoFacePolicy, typer.Option(help="What to do with an image without a detected face: blur, leave or drop it.")
]
ConsentingVoices = Annotated[
    list[str] | None,
    typer.Option(help="Pseudonym of a participant who consented to sound, if the transcript labels them. Repeatable."),
]
SoundProfile = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE",
        help="Profile of the recorded robot, for the format of sound that does not state its own.",
    ),
]


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on a terminal. Yields a function of (done, total)."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, whole: bar.update(task, completed=done, total=whole)
