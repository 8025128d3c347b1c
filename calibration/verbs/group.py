"""`tactful calibrate`: fit on labels what the robot's decisions rest on, and say how well it holds."""

from typing import ClassVar

from tactful_cli.verb_options import VerbsOnDemand, make_group


class CalibrateVerbs(VerbsOnDemand):
    """The verbs of `tactful calibrate`, of which each takes a second to import."""

    modules: ClassVar = {name: f"calibration.verbs.{name}" for name in ("thresholds",)}


app = make_group("Fit weights and thresholds on labels, and measure them on what they were not fitted on.")


@app.callback(cls=CalibrateVerbs)
def calibrate() -> None:
    """Fit on labels."""
