"""Arguments that several verbs of `tactful models` share."""

from typing import Annotated

import typer

from norm_core.models.catalogue import Catalogue


def known_names(incomplete: str) -> list[str]:
    """List the models whose name starts with `incomplete`, for shell completion."""
    return [name for name in Catalogue().names() if name.startswith(incomplete)]


Name = Annotated[str, typer.Argument(metavar="MODEL", help="Name of a model.", autocompletion=known_names)]
