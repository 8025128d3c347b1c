"""How likely a unit is an error or a competence, by its facts: an additive model that calibration fits."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from math import exp
from pathlib import Path

from pydantic import Field, model_validator

from norm_core.files.data_files import shipped_file
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record
from norm_core.runtime.artefact import Artefact, load_artefact
from norm_core.runtime.config import Config
from norm_monitor.assessment.finding import Finding
from norm_monitor.assessment.unit import UnitKind
from norm_monitor.assessment.unit_facts import FACTS_VERSION, Facts
from norm_monitor.context.wording import MAX_SIGN_WORDS

SHIPPED = shipped_file("norm_monitor.assessment", "unit_weights.json")
# For every size of reader: the outputs of each are brought to the same scale.
SHIPPED_WITH_READER = shipped_file("norm_monitor.assessment", "unit_weights_reader.json")
# Usual time to an answer from which the silences of a robot, and its turns, are weighed as those of a slow robot. The
# words of a robot that takes a few seconds, as one with a language model does, are read as ever.
SLOW_PACE_S = 2.0
SLOW_PACE_OF_TURNS_S = 4.0
# After one late answer, words are still read.
_SLOW_ANSWERS = 2
# Share of its turns from which a robot counts as one that reports its work.
_REPORTING = 0.25
# A direct question or request that waits so long counts as with any robot, unless this one reports its work.
OWED_S = 4.0
# A competence needs log odds so far above those of an error, by the talk reader. Of 100 lines of blame and scorn 5
# are then praised, and of 100 kind lines 54 (two hands that the reader was not taught, 2026-11-30).
PRAISE_MARGIN = 2.5
# Log odds that no score falls below.
NEVER = -99.0
# Log odds of an error that a setting states.
_SURE = 4.0
KIND, FORMAT = "unit weights", 3
MADE_WITH = {"facts": FACTS_VERSION}
_FIT_ANEW = "fit it anew (python -m calibration.monitor --write)"
AttributeSets = tuple[tuple[tuple[Attribute, ...], int], ...]  # each set with the number of units
# How many attributes a flag names; a coder rarely names more.
_MAX_ATTRIBUTES = 3


class Sensitivity(StrEnum):
    """How many false errors an hour are accepted for more true ones."""

    QUIET = "quiet"
    BALANCED = "balanced"
    KEEN = "keen"


class Steps(Config):
    """What one fact adds to a score: a value for each interval between cuts, and one where the fact is missing."""

    cuts: tuple[float, ...]
    values: tuple[float, ...]
    missing: float = 0.0

    @model_validator(mode="after")
    def _has_a_value_between_cuts(self) -> "Steps":
        if len(self.values) != len(self.cuts) + 1 or list(self.cuts) != sorted(self.cuts):
            raise ValueError("cuts rise, and there is one value more than cuts")
        return self

    def at(self, value: float | None) -> float:
        """Return what a value of the fact adds."""
        return self.missing if value is None else self.values[bisect_right(self.cuts, value)]


class AdditiveScore(Config):
    """A sum of what each fact adds, in log odds, which a fact that decides alone may raise."""

    intercept: float
    facts: dict[str, Steps]
    # The least score by each fact that decides alone, whatever others speak against it.
    least: dict[str, Steps] = Field(default_factory=dict)

    def of(self, facts: Facts) -> float:
        """Return the score of a unit's facts."""
        return self.intercept + sum(self._parts(facts).values())

    def parts(self, facts: Facts) -> dict[str, float]:
        """Return what each fact adds, the strongest support first."""
        return dict(sorted(self._parts(facts).items(), key=lambda part: (-part[1], part[0])))

    def _parts(self, facts: Facts) -> dict[str, float]:
        parts = {name: steps.at(facts.get(name)) for name, steps in self.facts.items()}
        for name, steps in self.least.items():
            missing = steps.at(facts.get(name)) - self.intercept - sum(parts.values())
            parts[name] = parts.get(name, 0.0) + max(0.0, missing)
        return parts


class KindModel(Config):
    """The scores of one kind of unit: each polarity against an ordinary unit, then the attributes of each."""

    polarities: dict[Polarity, AdditiveScore]
    attributes: dict[Polarity, dict[Attribute, AdditiveScore]]
    coded: dict[Polarity, AttributeSets]  # what coders name together
    named_from: dict[Polarity, float]  # the least that a further attribute must add to the probability of sharing one


class OperatingPoint(Config):
    """The probabilities from which units are flagged, and what to expect of them."""

    error: float = Field(gt=0, le=1)
    competence: float = Field(gt=0, le=1)
    false_errors_per_hour: float  # in harmless talk by writers that the model was not fitted on
    # From which a unit is flagged before its reaction is known; without one it waits.
    early: dict[Polarity, float] = Field(default_factory=dict)
    # Those in talk with a robot that answers slowly.
    slow: dict[Polarity, float] = Field(default_factory=dict)

    def expectation(self, sensitivity: Sensitivity) -> str:
        """Say what to expect of the sensitivity."""
        return (
            f"sensitivity {sensitivity}: expect about {self.false_errors_per_hour:g} false errors an hour in harmless "
            "talk, as measured on writers left out"
        )

    def threshold(self, polarity: Polarity, *, is_early: bool = False, is_slow: bool = False) -> float:
        """Return the probability from which a polarity is flagged, once its reaction is known or before."""
        if is_early:
            return self.early.get(polarity, 1.0)
        if is_slow and polarity in self.slow:
            return self.slow[polarity]
        return self.error if polarity is Polarity.ERROR else self.competence


@record
class UnitReading:
    """The odds and attributes of a unit by its facts alone."""

    odds: dict[Polarity, float]  # against an ordinary unit; a polarity that is missing is not weighed
    attributes: dict[Polarity, tuple[Attribute, ...]]  # likeliest first


class UnitModel(Artefact):
    """The fitted model of all kinds of units."""

    kinds: dict[UnitKind, KindModel]
    # For facts that are known at the unit's end, before any reaction.
    early_kinds: dict[UnitKind, KindModel] = Field(default_factory=dict)
    # In talk with a robot that answers slowly; there nothing is weighed before the reaction.
    slow_kinds: dict[UnitKind, KindModel] = Field(default_factory=dict)
    operating_points: dict[Sensitivity, OperatingPoint]
    sightings: dict[str, float]  # by cue, the share of what it sees that coders mark so

    @classmethod
    def load(cls, path: Path = SHIPPED) -> "UnitModel":
        """Load an artefact; raise ConfigError if it does not fit this version of the facts."""
        return load_artefact(cls, path, kind=KIND, format_=FORMAT, made_with=MADE_WITH, remedy=_FIT_ANEW)

    @classmethod
    def blank(cls) -> "UnitModel":
        """Return a model without weights."""
        point = OperatingPoint(error=1, competence=1, false_errors_per_hour=0)
        return cls(
            kind=KIND, format=FORMAT, made_on="", made_with=MADE_WITH, fitted_on={}, kinds={}, sightings={},
            operating_points=dict.fromkeys(Sensitivity, point),
        )  # fmt: skip

    def with_answer_limit(self, limit_s: float) -> "UnitModel":
        """Return the model with each silence of this length after a person's words as a sure error."""
        least = {"silence_s": Steps(cuts=(limit_s,), values=(NEVER, _SURE), missing=NEVER)}

        def limit(kinds: dict[UnitKind, KindModel]) -> dict[UnitKind, KindModel]:
            silence = kinds.get(UnitKind.SILENCE)
            if silence is None:
                return kinds
            error = silence.polarities[Polarity.ERROR].model_copy(update={"least": least})
            polarities = {**silence.polarities, Polarity.ERROR: error}
            return {**kinds, UnitKind.SILENCE: silence.model_copy(update={"polarities": polarities})}

        return self.model_copy(update={"kinds": limit(self.kinds), "slow_kinds": limit(self.slow_kinds)})

    def kind_model(self, kind: UnitKind, facts: Facts, *, is_early: bool = False) -> KindModel | None:
        """Return the weights of a kind of unit, by all that is known of it or by what is at its end."""
        if self.slow_kinds and is_slow(kind, facts):
            return None if is_early else self.slow_kinds.get(kind)
        if "pause_at_work_s" in facts:
            return None  # A robot that answers in time seldom says no more than that it is at work.
        return (self.early_kinds if is_early else self.kinds).get(kind)

    def read(self, kind: UnitKind, facts: Facts, *, is_early: bool = False) -> UnitReading | None:
        """Return what the facts amount to; None for a kind of unit that was not fitted."""
        model = self.kind_model(kind, facts, is_early=is_early)
        if model is None:
            return None
        attributes = {polarity: _name_attributes(model, polarity, facts) for polarity in model.attributes}
        if reads_amiss(facts) or is_unread(kind, facts):
            attributes[Polarity.COMPETENCE] = ()  # The odds stay, so that no error becomes likelier.
        return UnitReading(
            odds={polarity: exp(score.of(facts)) for polarity, score in model.polarities.items()},
            attributes=attributes,
        )

    def counted(self, kind: UnitKind, findings: Iterable[Finding]) -> list[Finding]:
        """Give sightings their share of right ones as a probability, where no facts are weighed."""
        if kind in self.kinds:
            return list(findings)
        return [
            replace(finding, probability=finding.probability or self.sightings.get(finding.reason.cue_id, 0.0))
            for finding in findings
        ]


def is_slow(kind: UnitKind, facts: Facts) -> bool:
    """Whether a unit is weighed as one of a robot that answers slowly or reports its work, as remote robots do."""
    pace_s, is_reporting = facts.get("pace_s", 0.0), facts.get("signs_of_work", 0.0) >= _REPORTING
    if is_reporting and (kind is not UnitKind.ROBOT_TURN or facts.get("words", 0.0) <= MAX_SIGN_WORDS):
        return True
    if kind is UnitKind.ROBOT_TURN:
        return pace_s >= SLOW_PACE_OF_TURNS_S and facts.get("answers_so_far", 0.0) >= _SLOW_ANSWERS
    return pace_s >= SLOW_PACE_S and facts.get("owed_silence_s", 0.0) < OWED_S


def is_unread(kind: UnitKind, facts: Facts) -> bool:
    """Whether a robot's turn is in a language that is not read, so that its words are not praised."""
    return kind is UnitKind.ROBOT_TURN and "text_competence_log_odds" not in facts


def reads_amiss(facts: Facts) -> bool:
    """Whether the talk reader does not clearly prefer a competence to an error, so that nothing is praised.

    A robot that answers slowly is weighed without the reader.
    """
    error = facts.get("reader_error")
    competence = facts.get("reader_competence")
    if error is None or competence is None or is_slow(UnitKind.ROBOT_TURN, facts):
        return False
    return competence < error + PRAISE_MARGIN


@lru_cache(maxsize=2)
def shipped_unit_model(*, has_reader: bool = False) -> UnitModel:
    """Return the model that Tactful ships, for facts with those of a talk reader, of any size, or without."""
    return UnitModel.load(SHIPPED_WITH_READER if has_reader else SHIPPED)


def rank_attributes(coded: AttributeSets, scores: Mapping[Attribute, float]) -> list[tuple[Attribute, float]]:
    """Return the attributes to name, and what each adds to the probability that a coder names one of them.

    A set that coders name together has its frequency as weight, times the odds of its attributes by the facts.
    `scores` holds these as log odds against the attribute's share. A second attribute covers other sets.
    """
    weights = {named: count * exp(min(50.0, sum(scores[attribute] for attribute in named))) for named, count in coded}
    total, ranked = sum(weights.values()) or 1.0, []
    for _ in range(_MAX_ATTRIBUTES):
        adds = {
            attribute: sum(weight for named, weight in weights.items() if attribute in named) / total
            for attribute in Attribute
        }
        best = max(Attribute, key=lambda attribute: adds[attribute])
        ranked.append((best, adds[best]))
        weights = {named: weight for named, weight in weights.items() if best not in named}
    return ranked


def _name_attributes(model: KindModel, polarity: Polarity, facts: Facts) -> tuple[Attribute, ...]:
    """Return the attribute that a coder most likely names, and others that add enough."""
    scores = {attribute: score.of(facts) - score.intercept for attribute, score in model.attributes[polarity].items()}
    ranked = rank_attributes(model.coded[polarity], scores)
    return tuple(
        attribute
        for rank, (attribute, adds) in enumerate(ranked)
        if adds and (rank == 0 or adds >= model.named_from[polarity])
    )
