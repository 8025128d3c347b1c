"""How likely a person holds a turn of the robot's against it: repeats, rephrases, corrects or cancels the request.

It ranks turns for whoever reads a session, and raises no flag. Its weights are fitted on what people did next.
"""

from dataclasses import replace
from functools import lru_cache
from math import exp
from pathlib import Path

from norm_core.files.data_files import shipped_file
from norm_core.records.record import record
from norm_core.runtime.artefact import Artefact, load_artefact
from norm_monitor.assessment.explanation import SMALLER_FACTS, cited_facts, describe_measurement
from norm_monitor.assessment.unit import UnitKind
from norm_monitor.assessment.unit_evidence import UnitEvidence
from norm_monitor.assessment.unit_facts import Facts, MeasuredUnit
from norm_monitor.assessment.unit_model import MADE_WITH, AdditiveScore

SHIPPED = shipped_file("norm_monitor.assessment", "rejection_weights.json")
KIND, FORMAT = "rejection weights", 1
_FIT_ANEW = "fit it anew (python -m calibration.talk_verdicts TALKS.jsonl --refit --write)"
# How many facts the reason for a rejection names.
_MAX_REASONS = 3
_DIGITS = 3


@record
class TurnRejection:
    """A turn of the robot's that takes no more evidence, and how likely the person holds it against the robot."""

    start_ns: int
    end_ns: int
    text: str
    next_words: str = ""  # of the person
    rejection: float | None = None  # with what the person says next; None where nobody speaks in time
    rejection_at_once: float | None = None  # by what was known as the turn ended; None if somebody spoke before that
    reasons: tuple[str, ...] = ()  # the facts that speak most for a rejection, the strongest first


class RejectionModel(Artefact):
    """The weights of a turn's facts: of those that are known at its end, and of all."""

    at_once: AdditiveScore
    with_reaction: AdditiveScore

    @classmethod
    def load(cls, path: Path = SHIPPED) -> "RejectionModel":
        """Load an artefact; raise ConfigError if it does not fit this version of the facts."""
        return load_artefact(cls, path, kind=KIND, format_=FORMAT, made_with=MADE_WITH, remedy=_FIT_ANEW)

    def read(self, evidence: UnitEvidence) -> TurnRejection | None:
        """Return what is known of a robot's turn; None for any other unit, and for one that was not measured."""
        measured = evidence.measured or evidence.early
        if evidence.unit.kind is not UnitKind.ROBOT_TURN or measured is None:
            return None
        followed = evidence.measured if measured.reaction else None
        return TurnRejection(
            start_ns=measured.turn.start_ns,
            end_ns=measured.turn.end_ns,
            text=measured.turn.text,
            next_words=measured.reaction.text if measured.reaction else "",
            rejection=_probability(self.with_reaction, followed),
            rejection_at_once=_probability(self.at_once, before_reaction(evidence)),
            reasons=_find_reasons(measured, self.with_reaction if followed else self.at_once),
        )


def before_reaction(evidence: UnitEvidence) -> MeasuredUnit | None:
    """Return a turn as it ended; None if it was first measured when somebody had already spoken again."""
    early = evidence.early
    return None if early is None or early.facts.get("answered") else early


def estimate_rejection(score: AdditiveScore, facts: Facts) -> float:
    """Return the probability of a rejection by a turn's facts."""
    return 1 / (1 + exp(-score.of(facts)))


@lru_cache(maxsize=1)
def shipped_rejection_model() -> RejectionModel:
    """Return the weights that Tactful ships."""
    return RejectionModel.load()


def _probability(score: AdditiveScore, measured: MeasuredUnit | None) -> float | None:
    return None if measured is None else round(estimate_rejection(score, measured.facts), _DIGITS)


def _find_reasons(measured: MeasuredUnit, score: AdditiveScore) -> tuple[str, ...]:
    cited = (fact for fact in cited_facts(measured, score) if fact.measure != SMALLER_FACTS)
    against = [fact for fact in cited if fact.weight and fact.weight > 0]
    return tuple(describe_measurement(replace(fact, quote="")) for fact in against[:_MAX_REASONS])
