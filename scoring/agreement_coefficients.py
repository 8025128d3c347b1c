"""Agreement coefficients over units and coders' judgements, for many samples at once, such as those of a bootstrap.

NaN where one is undefined.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

# One unit: each coder's judgement (None if missing), and how often the unit occurs.
Unit = tuple[str | None, ...]
Tally = Counter[Unit]
Array = NDArray[np.float64]
Samples = Mapping[Unit, Array]  # how often each unit occurs in each sample

T = TypeVar("T")

_quiet = np.errstate(divide="ignore", invalid="ignore")  # 0 / 0 is NaN: undefined


@_quiet
def cohen_kappas(units: Samples) -> Array:
    """Compute the agreement of two coders beyond chance in each sample; NaN if both always give the same category."""
    pairs = {pair: count for pair, count in units.items() if None not in pair}
    total = _sum(pairs.values())
    observed = _sum(count for (a, b), count in pairs.items() if a == b) / total
    of_a = _sum_by_key((a, count) for (a, _), count in pairs.items())
    of_b = _sum_by_key((b, count) for (_, b), count in pairs.items())
    expected = _sum(of_a[category] * of_b[category] for category in of_a.keys() & of_b.keys()) / total**2
    return np.where(expected == 1, np.nan, (observed - expected) / (1 - expected))


@_quiet
def krippendorff_alphas(units: Samples) -> Array:
    """Compute nominal alpha of each sample; skip units with fewer than two judgements."""
    judged = [(Counter(value for value in unit if value is not None), count) for unit, count in units.items()]
    coincidence = _sum_by_key(
        ((a, b), count * (of_a * (of_b - (a == b)) / (values.total() - 1)))
        for values, count in judged
        if values.total() > 1
        for a, of_a in values.items()
        for b, of_b in values.items()
    )
    margins = _sum_by_key((a, weight) for (a, _), weight in coincidence.items())
    total = _sum(margins.values())
    expected = total**2 - _sum(weight**2 for weight in margins.values())
    observed = _sum(weight for (a, b), weight in coincidence.items() if a != b)
    return np.where(expected > 0, 1 - (total - 1) * observed / expected, np.nan)


@_quiet
def weighted_kappas(units: Samples, order: Sequence[str]) -> Array:
    """Compute Cohen's kappa of two coders with linear weights over ordered categories; NaN if nothing varies."""
    pairs = {
        (order.index(unit[0]), order.index(unit[1])): count
        for unit, count in units.items()
        if unit[0] is not None and unit[1] is not None
    }
    total = _sum(pairs.values())
    of_a = _sum_by_key((a, count) for (a, _), count in pairs.items())
    of_b = _sum_by_key((b, count) for (_, b), count in pairs.items())
    observed = _sum(abs(a - b) * count for (a, b), count in pairs.items()) / total
    expected = _sum(abs(a - b) * of_a[a] * of_b[b] for a in of_a for b in of_b) / total**2
    return np.where(expected > 0, 1 - observed / expected, np.nan)


def number_or_none(values: Array) -> float | None:
    """Return the figure of the only sample; None if it is undefined."""
    (value,) = np.ravel(values)
    return None if np.isnan(value) else float(value)


def _sum(values: Iterable[Array]) -> Array:
    return sum(values, np.zeros(1))


def _sum_by_key(values: Iterable[tuple[T, Array]]) -> dict[T, Array]:
    totals: dict[T, Array] = defaultdict(lambda: np.zeros(1))
    for key, value in values:
        totals[key] = totals[key] + value
    return totals
