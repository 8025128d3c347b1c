"""The least of a function of one number that has a single valley."""

from collections.abc import Callable

_STEPS = 60  # narrow any bounds to 3e-13 of their width
_GOLDEN = (5**0.5 - 1) / 2


def least_within(loss: Callable[[float], float], low: float, high: float) -> float:
    """Return where the loss is least between two bounds, by golden section: it must fall, then rise."""
    for _ in range(_STEPS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, right) if loss(left) <= loss(right) else (left, high)
    return (low + high) / 2
