"""What every verb's module begins with."""

from typing import Any

import typer


def single(**context_settings: Any) -> typer.Typer:
    """The app of a verb that is one command."""
    settings = {"help_option_names": ["-h", "--help"], **context_settings}
    return typer.Typer(context_settings=settings, rich_markup_mode=None, add_completion=False)
