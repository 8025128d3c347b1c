"""Find the answers that the evidence cannot separate, and define what happens when there are several."""

from collections.abc import Mapping
from enum import StrEnum

# Closer probabilities count as equal, so that the last digits of a sum decide nothing.
EQUAL = 1e-9


class WhenUnsure(StrEnum):
    """The recommendation when several candidates could be right."""

    ASK_HUMAN = "ask_human"
    DO_NOTHING = "do_nothing"
    BEST_EFFORT = "best_effort"


def calibrated_set(probabilities: Mapping[int, float], coverage: float) -> tuple[int, ...]:
    """Return the smallest set of likeliest candidates whose probabilities sum to `coverage`. Ties enter together."""
    if not probabilities:
        return ()
    order = sorted(probabilities, key=lambda index: (-probabilities[index], index))
    held, taken = 0.0, 0
    for taken, index in enumerate(order, 1):
        held += probabilities[index]
        following = probabilities[order[taken]] if taken < len(order) else -1.0
        if held >= coverage - EQUAL and probabilities[index] - following > EQUAL:
            break
    return tuple(order[:taken])
