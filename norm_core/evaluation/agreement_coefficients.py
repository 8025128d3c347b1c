"""Agreement coefficients over units and coders' judgements; None if undefined."""

from collections import Counter

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
