"""Output of the verbs: results on standard output, everything else on standard error."""

import json
import re
import sys
from collections.abc import Iterable
from typing import Any

from rich.box import SIMPLE
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

# A terminal obeys control characters, and direction marks show a text in another order than it has.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def on_one_line(name: str) -> str:
    """Return a name of somebody else's with its line breaks escaped, as a row or a line shows it."""
    return name.replace("\n", "\\n").replace("\t", "\\t")


def printable(text: str) -> str:
    """Return a text with what a terminal would obey escaped as in JSON: names and talk come from anywhere."""
    return _COMMANDS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class PrintableConsole(Console):
    """A console on which no text that is printed commands the terminal."""

    def render_str(self, text: str, **style: Any) -> Text:
        """Render a text before it is laid out, so that its column has room for the escapes."""
        return super().render_str(printable(text), **style)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as the base class does, and keep only its own control codes."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


# Terminals wrap lines themselves, so that a copied line is whole.
out = PrintableConsole(highlight=False, soft_wrap=True)
err = PrintableConsole(stderr=True, highlight=False, soft_wrap=True)
_UNCUT = 1_000  # columns; a table uses only what it needs


def show(text: str) -> None:
    """Print a line of a result for a person to standard output, without markup."""
    print(printable(text), flush=True)


def complain(message: str) -> None:
    """Print one error for a person to standard error."""
    print(f"tactful: {printable(message)}", file=sys.stderr)


def remark(*texts: str) -> None:
    """Print remarks for a person to standard error, as they are."""
    for text in texts:
        err.print(text, markup=False)


def titled_table(title: str, *names: str, numbers: Iterable[str] = ()) -> Table:
    """Make a table of texts, then of numbers."""
    table = Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    for name in names:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right", overflow="fold")
    return table


def print_table(table: Table) -> None:
    """Print a table to standard output, untruncated where that is not a terminal."""
    (out if out.is_terminal else PrintableConsole(highlight=False, width=_UNCUT)).print(table, soft_wrap=False)


def print_result(plain: Any, *shown: str | Table, as_json: bool, notes: Iterable[str] = ()) -> None:
    """Print a result for a program, as JSON alone, or for a person, with notes on standard error."""
    if as_json:
        print_json(plain)
        return
    for line in shown:
        show(line) if isinstance(line, str) else print_table(line)
    remark(*notes)


def print_json(value: Any) -> None:
    """Print a result for a program, as JSON alone."""
    print(printable(json.dumps(value, indent=2, ensure_ascii=False)), flush=True)
