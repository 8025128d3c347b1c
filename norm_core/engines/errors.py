"""The errors of a backend that cannot answer; each class maps to one outcome."""

import re

from norm_core.records.outcome import Outcome
from norm_core.runtime.errors import TactfulError

# The messages of torch, CUDA, OpenCV and ONNX Runtime. CUBLAS initializes late, and fails then for lack of memory.
_OUT_OF_MEMORY = re.compile(
    r"out of memory|allocate memory|insufficient memory|failed to allocate|cudaErrorMemoryAllocation"
    r"|CU[A-Z]+_STATUS_(?:\w+_)?ALLOC\w*_FAILED|CUBLAS_STATUS_NOT_INITIALIZED",
    re.IGNORECASE,
)


class EngineError(TactfulError):
    """The base of backend errors; the message gives the problem and the remedy."""

    outcome = Outcome.FAILED


class InvalidRequestError(EngineError):
    """The model cannot take the request: no options, too many images, or a prompt beyond the context."""

    outcome = Outcome.INVALID


class EngineFailedError(EngineError):
    """The model or its server is broken: out of memory, mismatched weights, a dead server."""

    outcome = Outcome.FAILED


class ModelMemoryError(EngineFailedError):
    """Memory ran out; the same request with less may succeed."""


class UnparsedError(EngineError):
    """The model's output is not an answer."""

    outcome = Outcome.UNPARSED


class RefusedError(EngineError):
    """The model declined to answer."""

    outcome = Outcome.REFUSED


class PastDeadlineError(EngineError):
    """The deadline has passed or the request was cancelled."""

    outcome = Outcome.TIMED_OUT


def is_out_of_memory(error: Exception) -> bool:
    """Whether a library's error means that memory ran out."""
    return isinstance(error, MemoryError) or bool(_OUT_OF_MEMORY.search(str(error)))
