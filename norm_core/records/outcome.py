"""How a request ended. Only ANSWERED can be right; all others are counted apart and never guessed."""

from enum import StrEnum


class Outcome(StrEnum):
    ANSWERED = "answered"
    ABSTAINED = "abstained"  # a choice, made in time
    UNPARSED = "unparsed"  # the model's output was no answer
    TIMED_OUT = "timed_out"  # past its deadline
    REFUSED = "refused"  # by the model
    INVALID = "invalid"  # the request or the input was unusable
    FAILED = "failed"  # out of memory, hash mismatch, dead engine
