"""Lay rows out in a terminal of any width, or as plain lines in a log."""

import os
import time
import unicodedata
from collections.abc import Iterable

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tactful_cli.watch.flag_view import KnownFlag, attributes, kind, tone
from tactful_cli.watch.graph_view import GraphView
from tactful_cli.watch.node_view import NodeBeat
from tactful_cli.watch.rows import Tone, WatchRow

MOST_CHARACTERS = 500
TIME_WIDTH, LABEL_WIDTH = 8, 9
WIDE = 120  # columns, from which nodes and flags stand side by side
SHOWN_FLAGS, SHOWN_REASONS = 5, 6
# How often a log, which cannot be drawn anew, gets a summary.
LOG_SUMMARY_S = 60.0

_JOINERS = "\u200c\u200d"  # which Persian, Hindi and emoji need
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def plain(text: str) -> str:
    """Replace what a terminal would obey, turn around or hide, and cut what is too long."""
    cut = text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."
    return "".join(_plain_character(character) for character in cut)


def _plain_character(character: str) -> str:
    if character in "\t\n\r":
        return " "
    is_hidden = unicodedata.category(character) in _HIDDEN and character not in _JOINERS
    return "\ufffd" if is_hidden else character


class LogScreen:
    """One line an event, for what is no terminal that can be drawn on."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._next_s = time.monotonic() + LOG_SUMMARY_S
        self._last: list[str] = []

    def print(self, rows: Iterable[WatchRow], when: str) -> None:
        """Print rows with a time of day."""
        for row in rows:
            label = Text(f"{plain(row.label):{LABEL_WIDTH}}", style=row.tone.value)
            self._line(Text(f"{when:{TIME_WIDTH}} ") + label + Text(f" {plain(row.text)}"))
            indent = " " * (TIME_WIDTH + 1 + LABEL_WIDTH + 1)
            for name, value in row.details:
                self._line(Text(f"{indent}{name:{LABEL_WIDTH}} {plain(value)}"))

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

    def _line(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)


class TerminalScreen:
    """Events scroll by; below them, a board of what holds now is drawn anew. The scrollback stays a log."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True, vertical_overflow="ellipsis")
        self._live.start()

    def print(self, rows: Iterable[WatchRow], when: str) -> None:
        """Print rows with a time of day, wrapped at the width of the terminal."""
        grid = _grid(TIME_WIDTH, LABEL_WIDTH, None)
        for row in rows:
            text = Text(plain(row.text))
            grid.add_row(Text(when, style="dim"), Text(plain(row.label), style=row.tone.value), text)
            for name, value in row.details:
                inner = _grid(LABEL_WIDTH, None)
                inner.add_row(Text(name, style="dim"), Text(plain(value)))
                grid.add_row("", "", inner)
        if grid.row_count:
            self._console.print(grid)

    def refresh(self, view: GraphView) -> None:
        """Draw the board anew."""
        self._live.update(board(view, self._console.width), refresh=True)

    def close(self) -> None:
        """Remove the board."""
        self._live.stop()


Screen = LogScreen | TerminalScreen


def open_screen(console: Console) -> Screen:
    """Return the screen that fits the output."""
    is_dumb = os.environ.get("TERM", "dumb") in {"dumb", "unknown"}
    return TerminalScreen(console) if console.is_terminal and not is_dumb else LogScreen(console)


def board(view: GraphView, width: int) -> Group:
    """Return what holds now: nodes with remedies, open flags, and what they take."""
    nodes, flags = _nodes(view.nodes.nodes), _flags(view.flags.open)
    if width >= WIDE:
        halves = Table.grid(padding=(0, 2, 0, 0), expand=True)
        halves.add_column(ratio=1)
        halves.add_column(ratio=1)
        halves.add_row(nodes, flags)
        parts: list[Table | Text] = [halves]
    else:
        parts = [nodes, flags]
    now = "; ".join(filter(None, (view.speech.partial, "the robot speaks" if view.speech.robot_speaks else "")))
    lines = [*view.summary(), f"now: {now or 'nobody speaks'}"]
    rule = Text("-" * width, style="dim")
    return Group(rule, *parts, *(Text(plain(line), no_wrap=True, overflow="ellipsis") for line in lines))


def _nodes(nodes: dict[str, NodeBeat]) -> Table:
    """Return a row for each node that lacks something, and one for all others together."""
    grid = _grid(None, None)
    left = SHOWN_REASONS
    well: dict[tuple[str, Tone], list[str]] = {}
    for name, beat in nodes.items():
        if not beat.status.reasons:
            well.setdefault((beat.state, beat.tone), []).append(name)
            continue
        reasons = beat.status.reasons[:left]
        left -= len(reasons)
        grid.add_row(Text(beat.state, style=beat.tone.value), Text(plain(f"{name}: {'; '.join(reasons)}")))
    for (state, tone_of_state), names in well.items():
        grid.add_row(Text(state, style=tone_of_state.value), Text(plain(", ".join(names))))
    return grid


def _flags(known: list[KnownFlag]) -> Table:
    grid = _grid(None, None, None, cut=True)
    for each in known[-SHOWN_FLAGS:]:
        flag = each.flag
        name = Text(f"#{each.number} {kind(flag)}", style=tone(flag).value)
        grid.add_row(name, Text(f"{flag.probability:.2f}"), Text(f"{attributes(flag)}: {plain(flag.rationale)}"))
    if len(known) > SHOWN_FLAGS:
        grid.add_row(Text(f"and {len(known) - SHOWN_FLAGS} more"), "", "")
    return grid


def _grid(*widths: int | None, cut: bool = False) -> Table:
    """Return a table without lines, whose last column takes the rest and is wrapped or cut."""
    grid = Table.grid(padding=(0, 1, 0, 0), expand=widths[-1] is None)
    for width in widths[:-1]:
        grid.add_column(width=width, no_wrap=True)
    grid.add_column(ratio=1, no_wrap=cut, overflow="ellipsis" if cut else "fold")
    return grid
