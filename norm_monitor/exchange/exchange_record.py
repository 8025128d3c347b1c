"""A robot's turn with the words around it, and its classification."""

from collections.abc import Mapping
from enum import IntEnum

from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record


class ExchangeStage(IntEnum):
    """How much is known of what follows the turn."""

    SAID = 0
    ANSWERED = 1  # a person answered
    GONE_ON = 2  # the robot continued


@record
class Exchange:
    """The words of an exchange; a text is empty if it was not said, or not yet."""

    before: str  # what people said since the robot's previous turn
    said: str
    after: str = ""
    then: str = ""
    earlier: str = ""  # the robot's previous turn
    opening: bool = False  # the robot's first turn

    @property
    def stage(self) -> ExchangeStage:
        """How much is known of what follows the turn."""
        if self.then:
            return ExchangeStage.GONE_ON
        return ExchangeStage.ANSWERED if self.after else ExchangeStage.SAID


@record
class ExchangePrediction:
    """The probability of a coder's mark on the turn by polarity, its precision, and the attributes.

    `precision_at_score` is the fraction of coder-marked turns among held-out turns with at least this probability.
    """

    probability: Mapping[Polarity, float]
    precision_at_score: Mapping[Polarity, float]
    attributes: Mapping[Polarity, tuple[Attribute, ...]]  # likeliest first
