"""How a request ended. Only ANSWERED can be correct; each other outcome has its own count."""

from enum import StrEnum

_PREDICATES = {"unparsed": "gave no answer in the asked form", "invalid": "could not use the request"}


class Outcome(StrEnum):
    """The outcome of a request."""

    ANSWERED = "answered"
    ABSTAINED = "abstained"  # the selector chose to abstain, in time
    UNPARSED = "unparsed"  # the model's output was not an answer
    TIMED_OUT = "timed_out"  # the deadline passed
    REFUSED = "refused"  # the model declined
    INVALID = "invalid"  # the request or its input was unusable
    FAILED = "failed"  # out of memory, hash mismatch, dead engine
    CANCELLED = "cancelled"  # by whoever asked, before an answer
    BUSY = "busy"  # too many requests waited already

    @property
    def predicate(self) -> str:
        """The outcome as a predicate, for a sentence with the model as its subject."""
        return _PREDICATES.get(self.value, self.value.replace("_", " "))
