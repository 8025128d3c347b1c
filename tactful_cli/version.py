"""`tactful version`."""

from norm_core import __version__
from tactful_cli.console import print_json
from tactful_cli.verb import AsJson, single

app = single()


@app.command()
def version(as_json: AsJson = False) -> None:
    """Print the version."""
    if as_json:
        print_json({"version": __version__})
    else:
        print(__version__)
