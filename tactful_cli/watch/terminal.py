"""Show rows in a terminal, or as plain lines in a log."""

import time
import unicodedata
from collections.abc import Iterable, Iterator

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from tactful_cli.watch.graph_view import GraphView
from tactful_cli.watch.node_view import WatchRow

MAX_CHARACTERS = 500
TIME_WIDTH, LABEL_WIDTH = 8, 9
LEAST_TEXT = 30  # columns; where fewer are left beside a label, the text goes on below it

_JOINERS = "\u200c\u200d"  # which Persian, Hindi and emoji need
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_WRAPPER = Console()  # Text asks one how to wrap; nothing is printed on it


def plain(text: str) -> str:
    """Replace what a terminal would obey, turn around or hide, and cut what is too long."""
    cut = text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}..."
    return "".join(_plain_character(character) for character in cut)


def row_lines(row: WatchRow, when: str, width: int | None) -> Iterator[Text]:
    """Lay a row out; without a width, each text stays on one line. No line ends in spaces."""
    label = (f"{plain(row.label):{LABEL_WIDTH}} ", row.tone.value)
    yield from hanging(Text.assemble((f"{when:{TIME_WIDTH}} ", "dim"), label), row.text, width)
    for name, value in row.details:
        indent = " " * (TIME_WIDTH + 1 + LABEL_WIDTH + 1)
        yield from hanging(Text.assemble(indent, (f"{name:{LABEL_WIDTH}} ", "dim")), value, width)


def hanging(head: Text, text: str, width: int | None) -> Iterator[Text]:
    """Put a text beside its head, and what is left of it below, as far right where there is room."""
    body = Text(plain(text))
    if width is None:
        yield Text.assemble(head, body)
        return
    indent = cell_len(head.plain)
    if width - indent < LEAST_TEXT:
        head, body, indent = Text(), Text.assemble(head, body), 0
    for line in body.wrap(_WRAPPER, width - indent):
        line.rstrip()
        yield Text.assemble(head, line)
        head = Text(" " * indent)


def _plain_character(character: str) -> str:
    if character in "\t\n\r":
        return " "
    is_hidden = unicodedata.category(character) in _HIDDEN and character not in _JOINERS
    return "\ufffd" if is_hidden else character


SUMMARY_S = 60.0  # how often the summary is looked at


class EventScreen:
    """Rows as they come, wrapped at the width of a terminal, and at times a summary where it changed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._next_s = time.monotonic() + SUMMARY_S
        self._last: list[str] = []

    def print(self, rows: Iterable[WatchRow], when: str) -> None:
        """Print rows with a time of day."""
        width = self._console.width if self._console.is_terminal else None
        for row in rows:
            for line in row_lines(row, when, width):
                self._console.print(line, soft_wrap=True)

    def refresh(self, view: GraphView) -> None:
        """Print the summary, if it is due."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + SUMMARY_S
        lines = view.summary()
        if lines != self._last:
            self._last = lines
            self.print([WatchRow(label="summary", text="; ".join(lines))], time.strftime("%H:%M:%S"))
