"""Shared definitions of the verbs' modules."""

from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print only JSON.")]

_SETTINGS = {"help_option_names": ["-h", "--help"]}


def single(**context_settings: Any) -> typer.Typer:
    """Create the app of a verb that is one command."""
    return typer.Typer(context_settings={**_SETTINGS, **context_settings}, rich_markup_mode=None, add_completion=False)


def group(about: str) -> typer.Typer:
    """Create the app of a verb that is a group of commands."""
    return typer.Typer(
        context_settings=_SETTINGS, rich_markup_mode=None, add_completion=False, no_args_is_help=True, help=about
    )
