"""The arguments and progress bars that the verbs of `tactful bag` share."""

import time
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

_DRAWN_EVERY_S = 0.1


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on a terminal. Yields a function of (done, total)."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    # Without a thread that draws, so that this process can be copied while the bar is shown.
    hidden = not err.is_terminal
    with Progress(*columns, console=err, transient=True, disable=hidden, auto_refresh=False) as bar:
        task, drawn_s = bar.add_task(what, total=None), [0.0]

        def tell(done: int, whole: int) -> None:
            is_due = time.monotonic() > drawn_s[0] + _DRAWN_EVERY_S
            if is_due:
                drawn_s[0] = time.monotonic()
            bar.update(task, completed=done, total=whole, refresh=is_due)

        yield tell
