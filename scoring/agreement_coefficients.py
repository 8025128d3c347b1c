"""Agreement coefficients over units and coders' judgements, for many samples at once, such as those of a bootstrap.

NaN where one is undefined.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from norm_core.records.record import record

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
    of_a, of_b = _sums((a, count) for (a, _), count in pairs.items()), _sums((b, n) for (_, b), n in pairs.items())
    expected = _sum(of_a[category] * of_b[category] for category in of_a.keys() & of_b.keys()) / total**2
    return _beyond_chance(observed, expected)


@_quiet
def krippendorff_alphas(units: Samples) -> Array:
    """Compute nominal alpha of each sample; skip units with fewer than two judgements."""
    judged = [(Counter(value for value in unit if value is not None), count) for unit, count in units.items()]
    coincidence = _sums(
        ((a, b), count * (of_a * (of_b - (a == b)) / (values.total() - 1)))
        for values, count in judged
        if values.total() > 1
        for a, of_a in values.items()
        for b, of_b in values.items()
    )
    margins = _sums((a, weight) for (a, _), weight in coincidence.items())
    total = _sum(margins.values())
    expected = total**2 - _sum(weight**2 for weight in margins.values())
    observed = _sum(weight for (a, b), weight in coincidence.items() if a != b)
    return np.where(expected > 0, 1 - (total - 1) * observed / expected, np.nan)


@_quiet
def gwet_ac1s(units: Samples, categories: Sequence[str]) -> Array:
    """Compute Gwet's AC1 of any number of coders, who may miss units; defined even if all always agree."""
    judged = [(Counter(value for value in unit if value is not None), count) for unit, count in units.items()]
    rated = _sum(count for votes, count in judged if votes)
    several = [(votes, votes.total(), count) for votes, count in judged if votes.total() > 1]
    agreed = _sum(count * (sum(n * (n - 1) for n in votes.values()) / (m * (m - 1))) for votes, m, count in several)
    shares = _sums((name, count * of_it / votes.total()) for votes, count in judged for name, of_it in votes.items())
    spread = _sum(share / rated * (1 - share / rated) for share in shares.values())
    expected = spread / np.float64(len(categories) - 1)
    return (agreed / _sum(count for *_, count in several) - expected) / (1 - expected)


@_quiet
def weighted_kappas(units: Samples, order: Sequence[str]) -> Array:
    """Compute Cohen's kappa of two coders with linear weights over ordered categories; NaN if nothing varies."""
    pairs = {
        (order.index(unit[0]), order.index(unit[1])): count
        for unit, count in units.items()
        if unit[0] is not None and unit[1] is not None
    }
    total = _sum(pairs.values())
    of_a, of_b = _sums((a, count) for (a, _), count in pairs.items()), _sums((b, n) for (_, b), n in pairs.items())
    observed = _sum(abs(a - b) * count for (a, b), count in pairs.items()) / total
    expected = _sum(abs(a - b) * of_a[a] * of_b[b] for a in of_a for b in of_b) / total**2
    return np.where(expected > 0, 1 - observed / expected, np.nan)


@_quiet
def icc_two_ways(tables: Array) -> Array:
    """Compute ICC(2,1) of tables without gaps: two-way random effects, absolute agreement, one rater."""
    if tables.ndim != 3 or min(tables.shape[1:]) < 2:
        return np.full(len(tables), np.nan)
    samples, targets, raters = tables.shape
    mean = tables.reshape(samples, -1).mean(axis=1)
    of_target, of_rater = tables.mean(axis=2), tables.mean(axis=1)
    between = raters * ((of_target - mean[:, None]) ** 2).sum(axis=1) / (targets - 1)
    of_raters = targets * ((of_rater - mean[:, None]) ** 2).sum(axis=1) / (raters - 1)
    left = tables - of_target[:, :, None] - of_rater[:, None, :] + mean[:, None, None]
    rest = (left**2).reshape(samples, -1).sum(axis=1) / ((targets - 1) * (raters - 1))
    return _ratio(between - rest, between + (raters - 1) * rest + raters * (of_raters - rest) / targets)


@_quiet
def icc_one_ways(scores: Sequence[Sequence[float]], weights: Array) -> Array:
    """Compute ICC(1,1): one-way random effects, one rater. Each target may have other raters, and more or fewer.

    `weights` has a row a sample, which says how often each target is in it.
    """
    rows = [np.asarray(row, dtype=float) for row in scores if len(row)]
    weights = weights[:, [bool(len(row)) for row in scores]]
    counts, sums = np.array([float(len(row)) for row in rows]), np.array([row.sum() for row in rows])
    within_rows = np.array([((row - row.mean()) ** 2).sum() for row in rows])
    targets, total = weights.sum(axis=1), weights @ counts
    apart = (sums / counts - (weights @ sums / total)[:, None]) ** 2
    between = (weights * counts * apart).sum(axis=1) / (targets - 1)
    within = weights @ within_rows / (total - targets)
    usual = (total - weights @ counts**2 / total) / (targets - 1)  # raters a target
    coefficients = _ratio(between - within, between + (usual - 1) * within)
    return np.where((targets > 1) & (total > targets), coefficients, np.nan)


def number_or_none(values: Array) -> float | None:
    """Return the figure of the only sample; None if it is undefined."""
    (value,) = np.ravel(values)
    return None if np.isnan(value) else float(value)


def _sum(values: Iterable[Array]) -> Array:
    return sum(values, np.zeros(1))


def _sums(values: Iterable[tuple[T, Array]]) -> dict[T, Array]:
    totals: dict[T, Array] = defaultdict(lambda: np.zeros(1))
    for key, value in values:
        totals[key] = totals[key] + value
    return totals


def _beyond_chance(observed: Array, expected: Array) -> Array:
    return np.where(expected == 1, np.nan, (observed - expected) / (1 - expected))


def _ratio(part: Array, whole: Array) -> Array:
    return np.where(whole > 0, part / whole, np.nan)


# The units of one coder: start and end in whole steps, in order, without overlap.
Units = Sequence[tuple[int, int]]


@record
class UnitizingCounts:
    """What one continuum adds to alpha_U of one category. Lengths count steps."""

    length: int
    coders: int
    observed: float  # squared differences over ordered pairs of coders, divided by the other coders of each
    units: tuple[int, ...]
    gaps: tuple[int, ...]


def unitizing_counts(length: int, coders: Sequence[Units]) -> UnitizingCounts | None:
    """Compare the coders of one continuum. None for fewer than two, or without length."""
    if len(coders) < 2 or length <= 0:
        return None
    sections = [list(_sections(length, units)) for units in coders]
    squared = sum(_squared_differences(a, b) for index, a in enumerate(sections) for b in sections[index + 1 :])
    return UnitizingCounts(
        length=length,
        coders=len(coders),
        observed=2 * squared / (len(coders) - 1),
        units=tuple(end - start for section in sections for start, end, is_unit in section if is_unit),
        gaps=tuple(end - start for section in sections for start, end, is_unit in section if not is_unit),
    )


@np.errstate(divide="ignore", invalid="ignore")
def unitizing_alphas(categories: Iterable[tuple[Sequence[UnitizingCounts], Array]]) -> Array:
    """Compute alpha_U of each sample over the continua of each category, joined end to end; NaN without a unit.

    Each category has its continua, and weights with a row a sample: how often each continuum is in it. Where the number
    of coders varies, each continuum weighs as in alpha with missing judgements. With a constant number, this is
    Krippendorff (1995; 2004, section 11.6).
    """
    observed, expected = np.zeros(1), np.zeros(1)
    for continua, weights in categories:
        positions = weights @ np.array([float(continuum.coders * continuum.length) for continuum in continua])
        disagreement = weights @ np.array([continuum.observed for continuum in continua])
        observed = observed + np.where(positions > 0, disagreement / positions, 0)
        expected = expected + np.where(positions > 0, _expected(continua, weights, positions), 0)
    return np.where(expected > 0, 1 - observed / expected, np.nan)


def _expected(continua: Sequence[UnitizingCounts], weights: Array, positions: Array) -> Array:
    units = np.array([length for continuum in continua for length in continuum.units], dtype=float)
    owners = np.repeat(np.arange(len(continua)), [len(continuum.units) for continuum in continua])
    in_gaps = np.zeros((len(continua), len(continua)))  # by the continuum of the unit, and that of the gap
    for column, continuum in enumerate(continua):
        gaps = np.sort(np.array(continuum.gaps, dtype=float))
        room = np.concatenate([np.cumsum((gaps + 1)[::-1])[::-1], [0.0]])  # in all gaps from each on
        first = np.searchsorted(gaps, units)
        fits = room[first] - (len(gaps) - first) * units
        in_gaps[:, column] = np.bincount(owners, units**2 * fits, len(continua))
    of_weights = weights[:, owners]
    by_unit = (of_weights.sum(axis=1) - 1) / 3 * (of_weights @ (2 * units**3 - 3 * units**2 + units))
    by_unit += ((weights @ in_gaps) * weights).sum(axis=1)
    return np.asarray(2 * by_unit / (positions * (positions - 1) - of_weights @ (units * (units - 1))))


def _sections(length: int, units: Units) -> Iterator[tuple[int, int, bool]]:
    """Cut a continuum into units and the gaps between them."""
    position = 0
    for start, end in units:
        if start > position:
            yield position, start, False
        yield start, end, True
        position = end
    if position < length:
        yield position, length, False


def _squared_differences(a: Sequence[tuple[int, int, bool]], b: Sequence[tuple[int, int, bool]]) -> int:
    """Sum over sections that share time: two units differ by their ends, a unit inside a gap by its length."""
    total, i, j = 0, 0, 0
    while i < len(a) and j < len(b):
        (start_a, end_a, unit_a), (start_b, end_b, unit_b) = a[i], b[j]
        if unit_a and unit_b:
            total += (start_a - start_b) ** 2 + (end_a - end_b) ** 2
        elif unit_a and start_b <= start_a and end_a <= end_b:
            total += (end_a - start_a) ** 2
        elif unit_b and start_a <= start_b and end_b <= end_a:
            total += (end_b - start_b) ** 2
        i, j = i + (end_a <= end_b), j + (end_b <= end_a)
    return total
