"""The arguments and progress bars that the verbs of `tactful bag` share."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from norm_core.bags.reader import BagError, BagReader
from tactful_cli.console import err

BagPath = Annotated[Path, typer.Argument(metavar="BAG", help="Folder of a rosbag2 bag, or one .mcap or .db3 file.")]
MadePath = Annotated[Path, typer.Argument(metavar="OUT", help="New folder to write; must not exist.")]


def topics_of(ctx: Any, incomplete: str) -> list[str]:
    """List the topics of the bag on the command line, for tab completion. Any is click's context type."""
    # click leaves earlier arguments unparsed while an option lacks its value.
    bag = ctx.params.get("bag") or next(iter(ctx.args), None)
    try:
        with BagReader(Path(bag or "")) as reader:
            return [topic.topic for topic in reader.topics if topic.topic.startswith(incomplete)]
    except BagError:
        return []


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on a terminal, otherwise a line now and then. Yields a function of (done, total)."""
    if not sys.stderr.isatty():
        yield progress_lines(what)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, whole: bar.update(task, completed=done, total=whole)


def progress_lines(what: str, every_s: float = 30) -> Callable[[int, int], None]:
    """Print the completed share to standard error, at most once every `every_s` seconds."""
    due_s = time.monotonic() + every_s

    def tell(done: int, whole: int) -> None:
        nonlocal due_s
        if whole and time.monotonic() >= due_s:
            due_s = time.monotonic() + every_s
            err.print(f"{what}: {done / whole:.0%}")

    return tell
