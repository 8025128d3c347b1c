"""`tactful version`."""

from typing import Annotated

import typer

from norm_core import __version__
from tactful_cli.console import print_json
from tactful_cli.verb import single

app = single()


@app.command()
def version(as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone.")] = False) -> None:
    """Print the version."""
    if as_json:
        print_json({"version": __version__})
    else:
        print(__version__)
