"""Find the answers that the evidence cannot separate."""

from collections.abc import Mapping

# Closer probabilities count as equal, so that the last digits of a sum decide nothing.
EQUAL = 1e-9


def select_possible(probabilities: Mapping[int, float], coverage: float) -> tuple[int, ...]:
    """Return the smallest set of likeliest candidates whose probabilities sum to `coverage`. Ties enter together."""
    if not probabilities:
        return ()
    order = sorted(probabilities, key=lambda index: (-probabilities[index], index))
    total = 0.0
    count = 0
    for count, index in enumerate(order, 1):
        total += probabilities[index]
        next_probability = probabilities[order[count]] if count < len(order) else -1.0
        if total >= coverage - EQUAL and probabilities[index] - next_probability > EQUAL:
            break
    return tuple(order[:count])
