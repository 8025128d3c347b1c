"""The command line's verbs, and what its exit codes mean."""

import sys

import typer

from norm_core import __version__
from norm_core.bags.reader import BagError
from norm_core.bags.writer import BagWriteError
from norm_core.config import ConfigError
from sim_replays.processes import NodeProcessError
from tactful_cli import api, bag, demo, doctor, hear, nodes, tests
from tactful_cli.console import complain

EXIT_NOT_WELL, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 1, 2, 130

app = typer.Typer(
    name="tactful",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="An online norm monitor and action selector for social robots on ROS 2.",
    epilog=(
        "Results go to standard output, progress and logs to standard error. Exit codes: 0 well, 1 what was checked "
        "or run is not well, 2 bad input, 3 set-up failed, 4 another host of the same node runs, 130 interrupted."
    ),
)
app.command("doctor")(doctor.doctor)
app.command("demo")(demo.demo)
app.command("nodes", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})(nodes.nodes)
app.add_typer(bag.app, name="bag")
app.command("hear")(hear.hear)
app.command("api")(api.api)
app.command("test", context_settings=tests.PASS_ALL_ON)(tests.test)


@app.command()
def env() -> None:
    """Print the shell lines that enter the environment: eval "$(./tactful env)"."""
    complain("`env` is answered by the ./tactful script; call it as ./tactful env")
    raise typer.Exit(EXIT_BAD_INPUT)


@app.command()
def version() -> None:
    """Print the version."""
    print(__version__)


def main() -> None:
    """Runs the verb on the command line and exits with its code."""
    try:
        app(prog_name="tactful")
    except (BagError, BagWriteError, ConfigError) as error:
        complain(str(error))
        sys.exit(EXIT_BAD_INPUT)
    except NodeProcessError as error:
        complain(str(error))
        sys.exit(EXIT_NOT_WELL)
    except KeyboardInterrupt:
        complain("interrupted")
        sys.exit(EXIT_INTERRUPTED)
