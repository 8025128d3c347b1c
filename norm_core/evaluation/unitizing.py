"""Krippendorff's alpha_U: whether coders cut a continuum, such as time, into the same units."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from norm_core.evaluation.agreement_coefficients import Array
from norm_core.records.record import record

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
        positions = weights @ np.array([float(each.coders * each.length) for each in continua])
        disagreement = weights @ np.array([each.observed for each in continua])
        observed = observed + np.where(positions > 0, disagreement / positions, 0)
        expected = expected + np.where(positions > 0, _expected(continua, weights, positions), 0)
    return np.where(expected > 0, 1 - observed / expected, np.nan)


def _expected(continua: Sequence[UnitizingCounts], weights: Array, positions: Array) -> Array:
    units = np.array([length for each in continua for length in each.units], dtype=float)
    owners = np.repeat(np.arange(len(continua)), [len(each.units) for each in continua])
    in_gaps = np.zeros((len(continua), len(continua)))  # by the continuum of the unit, and that of the gap
    for column, each in enumerate(continua):
        gaps = np.sort(np.array(each.gaps, dtype=float))
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
