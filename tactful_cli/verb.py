"""What every verb's module begins with."""

from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON alone.")]

_SETTINGS = {"help_option_names": ["-h", "--help"]}


def single(**context_settings: Any) -> typer.Typer:
    """The app of a verb that is one command."""
    return typer.Typer(context_settings={**_SETTINGS, **context_settings}, rich_markup_mode=None, add_completion=False)


def group(about: str) -> typer.Typer:
    """The app of a verb that is a group of commands."""
    return typer.Typer(
        context_settings=_SETTINGS, rich_markup_mode=None, add_completion=False, no_args_is_help=True, help=about
    )
