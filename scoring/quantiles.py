"""Quantiles of Student's t, and exact intervals of Poisson counts, without scipy."""

import math
from collections.abc import Callable

import numpy as np

_TINY = 1e-300  # in place of zero, by which Lentz's method would divide
_MAX_TERMS = 10_000  # of a continued fraction


def t_quantile(probability: float, freedom: float) -> float:
    """Return the value below which Student's t lies with this probability."""
    if probability < 0.5:
        return -t_quantile(1 - probability, freedom)
    tail = 2 * (1 - probability)  # of both sides
    x = _find_root(lambda x: incomplete_beta(freedom / 2, 0.5, x) - tail, 0.0, 1.0)
    return math.sqrt(freedom * (1 - x) / x) if x else math.inf


def poisson_interval(count: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact interval (Garwood 1936) of the mean of a Poisson count."""
    tail = (1 - confidence) / 2
    max_mean = count + 20 * math.sqrt(count + 1) + 20
    low = _find_root(lambda mean: tail - (1 - _poisson_cdf(count - 1, mean)), 0.0, max_mean) if count else 0.0
    return low, _find_root(lambda mean: _poisson_cdf(count, mean) - tail, 0.0, max_mean)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Compute the regularized incomplete beta function, by its continued fraction (Lentz's method)."""
    if not 0 < x < 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    c = 1.0
    d = 1 / _avoid_zero(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _MAX_TERMS):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _avoid_zero(1 + numerator * d)
            c = _avoid_zero(1 + numerator / c)
            fraction *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return math.exp(front) * fraction / a


def _avoid_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _poisson_cdf(count: int, mean: float) -> float:
    if mean <= 0:
        return 1.0
    k = np.arange(count + 1)
    logs = k * math.log(mean) - mean - np.concatenate([[0.0], np.cumsum(np.log(k[1:]))])
    return float(np.exp(logs).sum())


def _find_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Find the zero of a monotonic function by bisection, to the last digit."""
    sign = math.copysign(1, function(high))
    while low < (middle := (low + high) / 2) < high:
        if function(middle) * sign > 0:
            high = middle
        else:
            low = middle
    return middle
