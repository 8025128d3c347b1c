"""Which answers cannot be told apart, and what to do where there is more than one."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

# Probabilities nearer than this are equal: the last digits of a sum must not decide.
_EQUAL = 1e-9


class WhenUnsure(StrEnum):
    """What is recommended where several candidates could be right."""

    ASK_HUMAN = "ask_human"
    DO_NOTHING = "do_nothing"
    BEST_EFFORT = "best_effort"


def calibrated_set(probabilities: Mapping[int, float], coverage: float) -> tuple[int, ...]:
    """The fewest candidates, likeliest first, that hold at least coverage together; equals come in together."""
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
    """The coverage at which sets held the right answer in a share `wanted` of labelled cases, by split conformal.

    This is fitted on labels, and belongs into a calibration file beside what it was fitted on.
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
    place = min(len(needed) - 1, max(0, int(-(-wanted * (len(needed) + 1) // 1)) - 1))
    return min(1.0, needed[place])
