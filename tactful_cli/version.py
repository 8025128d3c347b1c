"""`tactful version`."""

from norm_core import __version__
from tactful_cli.verb import single

app = single()


@app.command()
def version() -> None:
    """Print the version."""
    print(__version__)
