"""Agreement coefficients over units and coders' judgements; None if undefined."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

# One unit: each coder's judgement (None if missing), and how often the unit occurs.
Unit = tuple[str | None, ...]
Tally = Counter[Unit]


def cohen_kappa(units: Tally) -> float | None:
    """Compute the agreement of two coders beyond chance; None if both always give the same category."""
    pairs = {pair: count for pair, count in units.items() if None not in pair}
    total = sum(pairs.values())
    if not total:
        return None
    observed = sum(count for (a, b), count in pairs.items() if a == b) / total
    of_a, of_b = Counter[str | None](), Counter[str | None]()
    for (a, b), count in pairs.items():
        of_a[a] += count
        of_b[b] += count
    expected = sum(of_a[category] * of_b[category] for category in of_a) / total**2
    return None if expected == 1 else (observed - expected) / (1 - expected)


def fleiss_kappa(units: Tally) -> float | None:
    """Compute the agreement of a fixed number of coders; skip units without a judgement from every coder."""
    rows = [(Counter(unit), count) for unit, count in units.items() if len(unit) > 1 and None not in unit]
    total = sum(count for _, count in rows)
    if not total:
        return None
    coders = rows[0][0].total()
    agreed, shares = 0.0, Counter[str | None]()
    for row, count in rows:
        agreed += count * (sum(n * n for n in row.values()) - coders) / (coders * (coders - 1))
        for category, votes in row.items():
            shares[category] += votes * count
    expected = sum((votes / (total * coders)) ** 2 for votes in shares.values())
    return None if expected == 1 else (agreed / total - expected) / (1 - expected)


def krippendorff_alpha(units: Tally) -> float | None:
    """Compute nominal alpha; skip units with fewer than two judgements."""
    coincidence: dict[tuple[str, str], float] = {}
    for unit, count in units.items():
        values = Counter(value for value in unit if value is not None)
        number = values.total()
        if number < 2:
            continue
        for a, of_a in values.items():
            for b, of_b in values.items():
                weight = count * of_a * (of_b - (a == b)) / (number - 1)
                coincidence[a, b] = coincidence.get((a, b), 0.0) + weight
    margins: dict[str, float] = {}
    for (a, _), weight in coincidence.items():
        margins[a] = margins.get(a, 0.0) + weight
    total = sum(margins.values())
    expected = total**2 - sum(weight**2 for weight in margins.values())
    if expected <= 0:
        return None
    observed = sum(weight for (a, b), weight in coincidence.items() if a != b)
    return 1 - (total - 1) * observed / expected


def gwet_ac1(units: Tally, categories: Sequence[str]) -> float | None:
    """Compute Gwet's AC1 of any number of coders, who may miss units; defined even if all always agree."""
    agreed, compared, rated, shares = 0.0, 0, 0, dict.fromkeys(categories, 0.0)
    for unit, count in units.items():
        votes = Counter(value for value in unit if value is not None)
        number = votes.total()
        if not number:
            continue
        rated += count
        for category, of_it in votes.items():
            shares[category] += count * of_it / number
        if number > 1:
            compared += count
            agreed += count * sum(n * (n - 1) for n in votes.values()) / (number * (number - 1))
    if not compared or len(categories) < 2:
        return None
    expected = sum(share / rated * (1 - share / rated) for share in shares.values()) / (len(categories) - 1)
    return (agreed / compared - expected) / (1 - expected)


def weighted_kappa(units: Tally, order: Sequence[str]) -> float | None:
    """Compute Cohen's kappa of two coders with linear weights over ordered categories; None if nothing varies."""
    pairs = {
        (order.index(unit[0]), order.index(unit[1])): count
        for unit, count in units.items()
        if unit[0] is not None and unit[1] is not None
    }
    total = sum(pairs.values())
    if not total:
        return None
    of_a, of_b = Counter[int](), Counter[int]()
    for (a, b), count in pairs.items():
        of_a[a] += count
        of_b[b] += count
    observed = sum(abs(a - b) * count for (a, b), count in pairs.items()) / total
    expected = sum(abs(a - b) * of_a[a] * of_b[b] for a in of_a for b in of_b) / total**2
    return 1 - observed / expected if expected else None


def icc_two_way(scores: Sequence[Sequence[float]]) -> float | None:
    """Compute ICC(2,1): two-way random effects, absolute agreement, one rater. One row a target, without gaps."""
    table = np.asarray(scores, dtype=float)
    if table.ndim != 2 or min(table.shape) < 2:
        return None
    targets, raters = table.shape
    mean, of_target, of_rater = table.mean(), table.mean(axis=1), table.mean(axis=0)
    between = raters * ((of_target - mean) ** 2).sum() / (targets - 1)
    of_raters = targets * ((of_rater - mean) ** 2).sum() / (raters - 1)
    rest = ((table - of_target[:, None] - of_rater + mean) ** 2).sum() / ((targets - 1) * (raters - 1))
    spread = between + (raters - 1) * rest + raters * (of_raters - rest) / targets
    return _ratio(between - rest, spread)


def icc_one_way(scores: Sequence[Sequence[float]]) -> float | None:
    """Compute ICC(1,1): one-way random effects, one rater. Each target may have other raters, and more or fewer."""
    rows = [np.asarray(row, dtype=float) for row in scores if len(row)]
    counts = np.array([len(row) for row in rows])
    total = int(counts.sum())
    if len(rows) < 2 or total <= len(rows):
        return None
    mean = np.concatenate(rows).mean()
    between = sum(len(row) * (row.mean() - mean) ** 2 for row in rows) / (len(rows) - 1)
    within = sum(((row - row.mean()) ** 2).sum() for row in rows) / (total - len(rows))
    usual = (total - (counts**2).sum() / total) / (len(rows) - 1)  # raters a target
    return _ratio(between - within, between + (usual - 1) * within)


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None
