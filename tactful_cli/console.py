"""Output of the verbs: results on standard output, everything else on standard error."""

import json
import sys
from collections.abc import Iterable
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

# Terminals wrap lines themselves, so that a copied line is whole.
out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)
_UNCUT = 1_000  # columns; a table uses only what it needs


def complain(message: str) -> None:
    """Print one error for a person to standard error."""
    print(f"tactful: {message}", file=sys.stderr)


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
    """Print a table to standard output, untruncated where that is no terminal."""
    (out if out.is_terminal else Console(highlight=False, width=_UNCUT)).print(table, soft_wrap=False)


def print_result(plain: Any, *shown: str | Table, as_json: bool, notes: Iterable[str] = ()) -> None:
    """Print a result for a program, as JSON alone, or for a person, with notes on standard error."""
    if as_json:
        print_json(plain)
        return
    for line in shown:
        print(line) if isinstance(line, str) else print_table(line)
    remark(*notes)


def print_json(value: Any) -> None:
    """Print a result for a program, as JSON alone."""
    print(json.dumps(value, indent=2, ensure_ascii=False), flush=True)
