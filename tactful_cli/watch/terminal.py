"""Show rows in a terminal, with a board below them, or as plain lines in a log."""

import os
import sys
import time
from collections import deque
from collections.abc import Iterable

from rich.console import Console
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType
from rich.text import Text

from tactful_cli.watch.board import board
from tactful_cli.watch.graph_view import GraphView
from tactful_cli.watch.rows import WatchRow
from tactful_cli.watch.text_layout import row_lines

# How often a log, which cannot be drawn anew, gets a summary.
LOG_SUMMARY_S = 60.0
# As many as a terminal can show, to fill it again after its size changed.
KEPT_ROWS = 200


class LogScreen:
    """One line an event, for what is no terminal that can be drawn on."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._next_s = time.monotonic() + LOG_SUMMARY_S
        self._last: list[str] = []

    def print(self, rows: Iterable[WatchRow], when: str) -> None:
        """Print rows with a time of day."""
        for row in rows:
            for line in row_lines(row, when, None):
                self._console.print(line, soft_wrap=True)

    def refresh(self, view: GraphView) -> None:
        """Print the summary at times, where it changed."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + LOG_SUMMARY_S
        lines = view.summary()
        if lines != self._last:
            self._last = lines
            self.print([WatchRow(label="summary", text="; ".join(lines))], time.strftime("%H:%M:%S"))

    def close(self) -> None:
        """Nothing is left to print."""


class TerminalScreen:
    """Events scroll by; below them, a board of what holds now is drawn anew. The scrollback stays a log."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._size = console.size
        self._kept: deque[tuple[WatchRow, str]] = deque(maxlen=KEPT_ROWS)
        self._live = self._open()

    def print(self, rows: Iterable[WatchRow], when: str) -> None:
        """Print rows with a time of day, wrapped at the width of the terminal."""
        dated = [(row, when) for row in rows]
        self._kept.extend(dated)
        self._print([line for row, when in dated for line in row_lines(row, when, self._console.width)])

    def refresh(self, view: GraphView) -> None:
        """Draw the board anew."""
        if self._size != self._console.size:
            self._redraw()
        width, height = self._size
        self._live.update(board(view, width, height), refresh=True)

    def close(self) -> None:
        """Remove the board."""
        self._live.stop()

    def _open(self) -> Live:
        # A board that only the caller sees is no place for what goes to a file.
        live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=sys.stderr.isatty(),
        )
        live.start()
        return live

    def _print(self, lines: list[Text]) -> None:
        if lines:
            self._console.print(Text("\n").join(lines), soft_wrap=True)

    def _redraw(self) -> None:
        """Fill the terminal again: where it wrapped the old board, nobody can tell."""
        self._live.stop()
        self._size = width, height = self._console.size
        # Line by line, as many terminals copy a screen that is cleared at once to their scrollback.
        erased = [((ControlType.CURSOR_MOVE_TO, 0, y), (ControlType.ERASE_IN_LINE, 2)) for y in range(height)]
        self._console.control(Control(*(code for pair in erased for code in pair), ControlType.HOME))
        lines = [line for row, when in self._kept for line in row_lines(row, when, width)]
        self._print(lines[-height:])
        self._live = self._open()


Screen = LogScreen | TerminalScreen


def open_screen(console: Console) -> Screen:
    """Return the screen that fits the output."""
    is_dumb = os.environ.get("TERM", "dumb") in {"dumb", "unknown"}
    return TerminalScreen(console) if console.is_terminal and not is_dumb else LogScreen(console)
