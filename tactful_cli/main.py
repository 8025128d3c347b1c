"""The verbs of the command line, and its exit codes."""

import signal
import sys
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from norm_core import __version__
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.extras import ExtraMissingError, format_install_command
from norm_core.runtime.program import IS_PACKAGE, PROGRAM
from tactful_cli.console import complain
from tactful_cli.verb_options import PARTS, VerbsOnDemand

EXIT_INTERRUPTED = 130

# Each verb is the `app` of a module, imported on demand. Importing all modules takes half a second.
# Verbs of absent parts are listed too, so that the message for them can say what to install.
VERBS = {
    "doctor": "tactful_cli.doctor",
    "setup": "tactful_cli.extras",
    "demo": "tactful_cli.demo",
    "bag": "tactful_cli.bag.bag",
    "hear": "tactful_cli.hear",
    "flags": "tactful_cli.flags",
    "view": "tactful_cli.view",
    "models": "tactful_cli.models.group",
    "scenarios": "tactful_cli.scenarios",
    "bench": "sim_replays.verbs.bench",
    "study": "study_desk.verbs.group",
    "up": "tactful_cli.up.up",
    "watch": "tactful_cli.watch.watch",
    "mcp": "tactful_cli.mcp.serve",
    "test": "tactful_cli.tests",
}
# The verbs whose results the talk reader improves. A checkout's set-up makes it; a package, the first of these verbs.
READING = {"demo", "flags", "mcp", "up", "view", "study add", "bench monitor"}
HELP = ("-h", "--help")


def _absent_part(verb: str) -> str:
    package = VERBS[verb].partition(".")[0]
    return package if package in PARTS and find_spec(package) is None else ""


class Verbs(VerbsOnDemand):
    """The verbs of `tactful`."""

    modules = VERBS

    def list_commands(self, ctx: Any) -> list[str]:
        """List the verbs of the parts that are installed."""
        return [verb for verb in super().list_commands(ctx) if not _absent_part(verb)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a verb. Raises ExtraMissingError where its part is not installed."""
        if cmd_name in VERBS and (part := _absent_part(cmd_name)):
            extra = PARTS[part]
            remedy = f"install it with {format_install_command(extra)}"
            raise ExtraMissingError(f"{cmd_name}: {extra} is not installed; {remedy}")
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolve a verb. Raises TactfulError for an unknown one, with the nearest verb or where they are listed."""
        if args[0] in VERBS or ctx.resilient_parsing:  # as tab completion parses
            return super().resolve_command(ctx, args)
        close = get_close_matches(args[0], VERBS, 1)
        remedy = f"did you mean {close[0]}?" if close else f"{PROGRAM} --help lists them"
        raise TactfulError(f"{args[0]}: there is no such verb; {remedy}")


app = typer.Typer(
    cls=Verbs,
    name="tactful",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": [*HELP]},
    epilog=(
        "Results go to standard output, progress and logs to standard error. Exit codes: 0 success, 1 a check or "
        "run found a problem, 2 bad input, 3 set-up failed or package missing, 4 the same node runs elsewhere, "
        "130 interrupted. " + ("" if IS_PACKAGE else f'eval "$({PROGRAM} env)" activates the environment in a shell.')
    ),
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        print(__version__)
        raise typer.Exit


@app.callback()
def tactful(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """An online norm monitor and action selector for social robots on ROS 2."""


def provide_reader_first(arguments: list[str]) -> None:
    """Make the talk reader before the first verb that reads, as an installed package has no set-up that does."""
    verbs = {*arguments[:1], " ".join(arguments[:2])}
    if IS_PACKAGE and READING & verbs and not set(HELP) & set(arguments):
        from tactful_cli.models.reader import provide_reader  # noqa: PLC0415  half a second

        provide_reader()


def main(program: typer.Typer = app, name: str = "tactful") -> None:
    """Run the verb on the command line, or a script of its own, and exit with its code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, signal.default_int_handler)  # as Ctrl-C, so that no child process survives
    try:
        if program is app:
            provide_reader_first(sys.argv[1:])
        program(prog_name=name)
    except TactfulError as error:
        complain(str(error))
        sys.exit(error.exit_code)
    except OSError as error:
        if error.filename is None:
            raise  # no file of the user's
        complain(f"{error.filename}: {error.strerror}; check the path, its permissions and the free room")
        sys.exit(TactfulError.exit_code)
    except KeyboardInterrupt:
        complain("interrupted")
        sys.exit(EXIT_INTERRUPTED)
