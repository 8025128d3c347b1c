"""Find the answers that the evidence cannot separate, and define what happens when there are several."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from math import ceil

# Closer probabilities count as equal, so that the last digits of a sum decide nothing.
_EQUAL = 1e-9


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
        if held >= coverage - _EQUAL and probabilities[index] - following > _EQUAL:
            break
    return tuple(order[:taken])


def coverage_for(right: Sequence[Mapping[int, float]], answers: Sequence[int], wanted: float) -> float:
    """Fit the coverage at which sets hold the right answer in a share `wanted` of labelled cases, by split conformal.

    The result is fitted on labels: store it in a calibration file that names its data.
    """
    if not right:
        raise ValueError("no labelled cases were given to calibrate on")
    needed = []
    for probabilities, answer in zip(right, answers, strict=True):
        if answer not in probabilities:
            needed.append(1.0)
            continue
        above = sum(value for index, value in probabilities.items() if value > probabilities[answer] + _EQUAL)
        needed.append(above + 2 * _EQUAL)
    needed.sort()
    place = max(1, ceil(wanted * (len(needed) + 1) - _EQUAL))
    return min(1.0, needed[place - 1]) if place <= len(needed) else 1.0  # too few cases: all candidates
