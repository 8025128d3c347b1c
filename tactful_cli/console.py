"""Output of the verbs: results on standard output, everything else on standard error."""

import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

# Terminals wrap lines themselves, so that a copied line is whole.
out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)
_UNCUT = 1_000  # columns; a table uses only what it needs


def complain(message: str) -> None:
    """Print one error for a person to standard error."""
    print(f"tactful: {message}", file=sys.stderr)


def print_table(table: Table) -> None:
    """Print a table to standard output, untruncated where that is no terminal."""
    (out if out.is_terminal else Console(highlight=False, width=_UNCUT)).print(table, soft_wrap=False)


def print_json(value: Any) -> None:
    """Print a result for a program, as JSON alone."""
    print(json.dumps(value, indent=2, ensure_ascii=False), flush=True)
