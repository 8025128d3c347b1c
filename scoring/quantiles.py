"""Quantiles of Student's t, without scipy."""

import math


def t_quantile(probability: float, freedom: int) -> float:
    """Return the value below which Student's t lies with this probability."""
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    low, high = 0.0, math.pi / 2  # the angle whose tangent is t over the root of the degrees of freedom
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _central_share(middle, freedom) < 2 * probability - 1 else (low, middle)
    return math.sqrt(freedom) * math.tan(middle)


def _central_share(angle: float, freedom: int) -> float:
    """Return the probability of values between both signs of this angle, by the finite series for whole degrees."""
    cosine = math.cos(angle)
    is_odd = freedom % 2
    term, total = (cosine if is_odd else 1.0), 0.0
    for power in range(2 + is_odd, freedom + 1, 2):
        total += term
        term *= cosine**2 * (power - 1) / power
    share = math.sin(angle) * total
    return (angle + share) * 2 / math.pi if is_odd else share
