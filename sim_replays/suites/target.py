"""What is right for a question, apart from the question itself; only scorers see it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from norm_core.evaluation.figures import Figures
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError

RANGES = "95 % interval"

Key = tuple[str, str]  # an item's id and a task


class SuiteError(TactfulError):
    """Benchmark files that are not as published, or not where they were said to be."""


@record
class Target:
    """One question's right answer. Places count from 0 in the dataset's own order.

    group names the picture or video that it comes from; words are other names of the places, as letters; kinds are
    what each option is; by are what figures are broken down by; references are texts that a written answer is graded
    against, and evidence those that written evidence is, by its kind.
    """

    id: str
    task: str
    group: str
    options: int
    right: tuple[int, ...] = ()
    several: bool = False
    words: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    by: Mapping[str, str] = field(default_factory=dict)
    references: tuple[str, ...] = ()
    evidence: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.id, self.task


@record
class Prediction:
    """What was answered to a question; chosen are places, and grades are a judge's, from 1 to 5."""

    id: str
    task: str
    outcome: Outcome
    chosen: tuple[int, ...] = ()
    text: str = ""
    grades: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    @property
    def key(self) -> Key:
        return self.id, self.task


Predictions = Mapping[Key, Prediction]


@record
class Suite:
    """One benchmark. columns are the figures of its table; read gives the targets of what lies at a path."""

    name: str
    tasks: tuple[str, ...]
    columns: tuple[str, ...]
    read: Callable[[Path, str], list[Target]]
    figures: Callable[[Sequence[Target], Predictions], Figures]
    broken_down_by: tuple[str, ...] = ()
    ranges: str = RANGES  # what stands beside a figure


def picks_target(target: Target, predictions: Predictions) -> tuple[int, ...] | None:
    """The places chosen for a question, which may be none where several may be right; None where unanswered."""
    found = predictions.get(target.key)
    return found.chosen if found is not None and found.outcome is Outcome.ANSWERED else None


def first_pick(target: Target, predictions: Predictions) -> int | None:
    """The one place chosen; None where unanswered."""
    return places[0] if (places := picks_target(target, predictions)) else None
