"""A suite as one object, and the suites by name."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Literal

from norm_core.evaluation.figures import Figures
from norm_core.records.record import record
from sim_replays.runs.run_config import Frames, RunConfig, RunItems
from sim_replays.suites.controls import Control
from sim_replays.suites.replies import FORMS, Form
from sim_replays.suites.target import Predictions, SuiteError, Target

RANGES = "95 % interval"
OURS = ("egogapbench", "egonormia", "videonorms", "hsri")


@record
class Suite:
    """One benchmark: how to read its data, make its questions, read replies, and score the answers.

    - `columns` are the figures of its table, the headline first. `read` returns the targets of a path.
    - `items` makes the episodes of a run. In a bare run each query carries the whole prompt as `question`, and as
      `style` the name of one of `forms`, which reads the reply. A reply that is not understood is asked for `tries`
      times. `bare_settings` are those in which a paper asks a model alone, its main one first.
    - `joint` names figures that count an item right only where it is right in each of several tasks.
    - `given` states for a setting what text comes from the dataset in place of perception.
    - `about_emotions` are tasks that may show pictures only where the deployment context allows it.
    - `published` is a YAML file of the paper's tables. `paper_frames` is how many pictures of a clip the paper shows,
      and `paper_form` how.
    """

    name: str
    tasks: tuple[str, ...]
    columns: tuple[str, ...]
    settings: tuple[str, ...]
    read: Callable[[Path, str], list[Target]]
    items: Callable[[RunConfig], RunItems]
    figures: Callable[[Sequence[Target], Predictions], Figures]
    controls: Mapping[str, Control]
    answered_by: Literal["selector", "judge"] = "selector"
    bare_settings: tuple[str, ...] = ()
    forms: Mapping[str, Form] = field(default_factory=lambda: FORMS)
    tries: int = 1
    given: Mapping[str, str] = field(default_factory=dict)
    about_emotions: tuple[str, ...] = ()
    broken_down_by: tuple[str, ...] = ()
    joint: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ranges: str = RANGES  # the text beside a figure
    paper_frames: int = 0
    paper_form: Frames = "discrete"
    published: Path | None = None


@cache
def suites() -> Mapping[str, Suite]:
    """Load our own suites, by name."""
    return {name: import_module(f"sim_replays.suites.{name}").SUITE for name in OURS}


def suite_called(name: str) -> Suite:
    """Look up a suite. Raises an error that lists all suites."""
    known = suites()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise SuiteError(f"there is no suite {name!r}; {hint}the suites are {', '.join(known)}")
    return known[name]
