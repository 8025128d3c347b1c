"""A model's answer about a unit."""

from collections.abc import Mapping
from dataclasses import field

from norm_core.records.flag import Attribute, Evidence, Polarity
from norm_core.records.outcome import Outcome
from norm_core.records.provenance import Provenance
from norm_core.records.record import record
from norm_monitor.units.unit import Unit


def judge_measure(polarity: Polarity) -> str:
    """Return the name of what the judge measures."""
    return f"probability of a social {polarity}, by the judge"


@record
class UnitJudgement:
    """The judge's answer about one unit, or why there is none.

    `probability` holds an error and a competence; the rest to 1 is that the unit is ordinary. The attributes, the
    note and the correction are empty where the model takes the unit for ordinary.
    """

    unit: Unit
    outcome: Outcome
    reason: str = ""
    probability: Mapping[Polarity, float] = field(default_factory=dict)
    attributes: tuple[Attribute, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    rationale: str = ""
    correction: str = ""
    provenance: Provenance = Provenance()
