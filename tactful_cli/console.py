"""Where a verb writes: results on standard output, everything else on standard error."""

import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

out = Console(highlight=False, soft_wrap=False)
err = Console(stderr=True, highlight=False)
_UNCUT = 1_000  # columns, of which a table takes what it needs


def complain(message: str) -> None:
    """One error for a person, on standard error."""
    print(f"tactful: {message}", file=sys.stderr)


def print_table(table: Table) -> None:
    """A table on standard output, as wide as it needs to be where that is no terminal."""
    (out if out.is_terminal else Console(highlight=False, width=_UNCUT)).print(table)


def print_json(value: Any) -> None:
    """A result for a program: JSON alone."""
    print(json.dumps(value, indent=2, ensure_ascii=False))
