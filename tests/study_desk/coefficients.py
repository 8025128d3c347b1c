"""The coefficients of one sample, of which the product computes many at once."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from scoring import agreement_coefficients as many
from scoring.agreement_coefficients import Array, Tally, UnitizingCounts, number_or_none, unitizing_alphas


def _of_one(coefficients: Callable[..., Array]) -> Callable[..., float | None]:
    def coefficient(units: Tally, *categories: Sequence[str]) -> float | None:
        return number_or_none(coefficients({unit: np.array([float(units[unit])]) for unit in units}, *categories))

    return coefficient


cohen_kappa = _of_one(many.cohen_kappas)
krippendorff_alpha, gwet_ac1 = _of_one(many.krippendorff_alphas), _of_one(many.gwet_ac1s)
weighted_kappa = _of_one(many.weighted_kappas)


def icc_two_way(scores: Sequence[Sequence[float]]) -> float | None:
    return number_or_none(many.icc_two_ways(np.asarray(scores, dtype=float)[None]))


def unitizing_alpha(categories: Iterable[Sequence[UnitizingCounts]]) -> float | None:
    return number_or_none(unitizing_alphas((continua, np.ones((1, len(continua)))) for continua in categories))
