"""What a backend raises when it cannot answer; each kind is one outcome."""

from norm_core.records.outcome import Outcome
from norm_core.runtime.errors import TactfulError


class EngineError(TactfulError):
    """The base; its message tells a person what happened and what to do."""

    outcome = Outcome.FAILED


class InvalidRequestError(EngineError):
    """The request cannot be asked of this model: no options, too many pictures, a prompt over the context."""

    outcome = Outcome.INVALID


class EngineFailedError(EngineError):
    """The model or what serves it is broken: out of memory, weights that do not match, a dead server."""

    outcome = Outcome.FAILED


class UnparsedError(EngineError):
    """The model's output is no answer."""

    outcome = Outcome.UNPARSED


class RefusedError(EngineError):
    """The model declined to answer."""

    outcome = Outcome.REFUSED


class PastDeadlineError(EngineError):
    """No time is left, or nobody waits for the answer any more."""

    outcome = Outcome.TIMED_OUT
