"""The suites by name."""

import difflib

from sim_replays.suites.egogapbench import EGOGAPBENCH
from sim_replays.suites.egonormia import EGONORMIA
from sim_replays.suites.hsri import HSRI
from sim_replays.suites.target import Suite, SuiteError
from sim_replays.suites.videonorms import VIDEONORMS

SUITES = {suite.name: suite for suite in (EGOGAPBENCH, EGONORMIA, VIDEONORMS, HSRI)}


def suite_called(name: str) -> Suite:
    """Look up a suite. Raises an error that lists all suites."""
    if name not in SUITES:
        close = difflib.get_close_matches(name, SUITES, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise SuiteError(f"there is no suite {name!r}; {hint}the suites are {', '.join(SUITES)}")
    return SUITES[name]
