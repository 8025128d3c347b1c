"""`tactful calibrate`: fit on labels what the robot's decisions rest on, and say how well it holds."""

from importlib import import_module
from typing import Any

from typer.core import TyperGroup
from typer.main import get_command

from tactful_cli.verb import group

_VERBS = ("sensors", "thresholds", "judge", "selector")


class CalibrateVerbs(TyperGroup):
    """Import each verb on demand, because that takes a second."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List the verbs in the order of use."""
        return list(_VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a verb's module and return its command, or None for an unknown verb."""
        if cmd_name not in _VERBS:
            return None
        command = get_command(import_module(f"tactful_cli.calibrate.{cmd_name}").app)
        command.name = cmd_name
        return command


app = group("Fit weights and thresholds on labels, and measure them on what they were not fitted on.")


@app.callback(cls=CalibrateVerbs)
def calibrate() -> None:
    """Fit on labels."""
