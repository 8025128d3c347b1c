"""Rows as lines of text, for a terminal of any width or for a log."""

import unicodedata
from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from tactful_cli.watch.rows import WatchRow

MOST_CHARACTERS = 500
TIME_WIDTH, LABEL_WIDTH = 8, 9
LEAST_TEXT = 30  # columns; where fewer are left beside a label, the text goes on below it

_JOINERS = "\u200c\u200d"  # which Persian, Hindi and emoji need
_WIDE_EMOJI = "\ufe0f"
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_WRAPPER = Console()  # Text asks one how to wrap; nothing is printed on it


def plain(text: str) -> str:
    """Replace what a terminal would obey, turn around or hide, and cut what is too long."""
    cut = text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."
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


def cut(text: Text, width: int, *, pad: bool = False) -> Text:
    """Return a text on one line that no terminal takes for wider."""
    columns, kept = 0, 0
    for index, character in enumerate(text.plain):
        # Terminals disagree on joined characters: at most, each takes its own columns, and a selector one more.
        columns += max(cell_len(character), character == _WIDE_EMOJI)
        if columns > width:
            text = text[:kept] + Text("\u2026")
            break
        if columns < width:
            kept = index + 1
    return text + Text(" " * max(0, width - text.cell_len)) if pad else text


def _plain_character(character: str) -> str:
    if character in "\t\n\r":
        return " "
    is_hidden = unicodedata.category(character) in _HIDDEN and character not in _JOINERS
    return "\ufffd" if is_hidden else character
