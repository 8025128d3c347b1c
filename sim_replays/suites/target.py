"""The right answer to a question, separate from it. Only scorers see it."""

from collections.abc import Mapping
from dataclasses import field

from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError

Key = tuple[str, str]  # an item's id and a task


class SuiteError(TactfulError):
    """Benchmark files differ from their publication, or are not where stated."""


@record
class Target:
    """One question's right answer. Positions count from 0 in the dataset's own order.

    `group` is its image or video; `words` are other names of positions, such as letters; `kinds` are the kinds of the
    options; `by` are the groups of the figures; `references` are for grading a written answer, and `evidence` for
    written evidence, by kind.
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
        """The question's id and task, which its prediction shares."""
        return self.id, self.task


@record
class Prediction:
    """The answer to a question. `chosen` are positions; `grades` from a judge run from 1 to 5."""

    id: str
    task: str
    outcome: Outcome
    chosen: tuple[int, ...] = ()
    text: str = ""
    grades: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    @property
    def key(self) -> Key:
        """The question's id and task, which its target shares."""
        return self.id, self.task


Predictions = Mapping[Key, Prediction]


def picks_target(target: Target, predictions: Predictions) -> tuple[int, ...] | None:
    """Return the chosen positions; possibly none where several may be right. None where unanswered."""
    found = predictions.get(target.key)
    return found.chosen if found is not None and found.outcome is Outcome.ANSWERED else None


def first_pick(target: Target, predictions: Predictions) -> int | None:
    """Return the one chosen position. None where unanswered."""
    return places[0] if (places := picks_target(target, predictions)) else None


def intersection_over_union(found: frozenset[int], right: frozenset[int]) -> float:
    """Compute intersection over union. Two empty sets give 1."""
    return len(found & right) / len(found | right) if found | right else 1.0
