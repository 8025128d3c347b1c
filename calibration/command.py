"""Run a function of the calibration as a command."""

import sys
from collections.abc import Callable
from typing import Any

import typer

from norm_core.runtime.errors import TactfulError


def run_command(main: Callable[..., Any]) -> None:
    """Run a function by the command line's arguments; print what it cannot use, and exit with its code."""
    try:
        typer.run(main)
    except TactfulError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
