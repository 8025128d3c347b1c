"""`tactful env`: print shell lines that activate the environment. The ./tactful script answers it itself."""

from norm_core.runtime.errors import TactfulError
from tactful_cli.verb import single

app = single()


@app.command()
def env() -> None:
    """Print shell lines that activate the environment: eval "$(./tactful env)"."""
    raise TactfulError("`env` is answered by the ./tactful script; call it as ./tactful env")
