"""`tactful env`, which the ./tactful script answers itself, since only a shell can be entered."""

from norm_core.runtime.errors import TactfulError
from tactful_cli.verb import single

app = single()


@app.command()
def env() -> None:
    """Print the shell lines that enter the environment: eval "$(./tactful env)"."""
    raise TactfulError("`env` is answered by the ./tactful script; call it as ./tactful env")
