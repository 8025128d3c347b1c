"""A progress bar for long work."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from tactful_cli.console import err

_MIN_INTERVAL_S = 0.1


@contextmanager
def show_progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on a terminal. Yields a function of (done, total)."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    shown_s = 0.0
    # No thread draws (auto_refresh), because this process may be forked while the bar is shown.
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal, auto_refresh=False) as bar:
        task = bar.add_task(label, total=None)

        def update(done: int, total: int) -> None:
            nonlocal shown_s
            is_due = time.monotonic() > shown_s + _MIN_INTERVAL_S
            if is_due:
                shown_s = time.monotonic()
            bar.update(task, completed=done, total=total, refresh=is_due)

        yield update
