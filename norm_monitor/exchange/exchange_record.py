"""A robot's turn amid what was said around it, and how it reads there."""

from collections.abc import Mapping
from enum import IntEnum

from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record


class ExchangeStage(IntEnum):
    """How much of what follows on the turn is known."""

    SAID = 0
    ANSWERED = 1  # by a person
    GONE_ON = 2  # the robot went on from there


@record
class Exchange:
    """Words alone; what was not said, or not yet, is empty."""

    before: str  # what people said since the robot's turn before
    said: str
    after: str = ""
    then: str = ""
    earlier: str = ""  # the robot's turn before
    opening: bool = False  # the robot's first turn

    @property
    def stage(self) -> ExchangeStage:
        if self.then:
            return ExchangeStage.GONE_ON
        return ExchangeStage.ANSWERED if self.after else ExchangeStage.SAID


@record
class ExchangePrediction:
    """How probably a coder would mark the turn, by polarity; how sure that makes one; and which attributes it is about.

    precision_at_score is the share of turns at least as probable that coders had marked so, among turns not
    learnt from.
    """

    probability: Mapping[Polarity, float]
    precision_at_score: Mapping[Polarity, float]
    attributes: Mapping[Polarity, tuple[Attribute, ...]]  # the likeliest first
