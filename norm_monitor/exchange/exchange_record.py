"""A robot's turn with the words around it, and its classification."""

from collections.abc import Mapping
from dataclasses import field
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
    """How a turn reads, as learnt from talks: the probability of a coder's mark by polarity, and the attributes.

    `seen` and `seen_scores` are the same as learnt from the encounters: least-squares scores, about 0 to 1.
    """

    probability: Mapping[Polarity, float]
    # About 1 for an attribute that a coder would name, else 0.
    scores: Mapping[Polarity, Mapping[Attribute, float]] = field(default_factory=dict)
    seen: Mapping[Polarity, float] = field(default_factory=dict)
    seen_scores: Mapping[Polarity, Mapping[Attribute, float]] = field(default_factory=dict)
