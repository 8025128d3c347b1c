"""Simulate how often the bound of a site's thresholds holds where sessions differ, on counts whose truth is known.

Run: python -m tests.calibration.bound_coverage DRAWS.
"""

import sys

import numpy as np

from calibration.session_flags import Counts
from calibration.threshold_fit import ThresholdTarget, estimate_and_bound

_SEED, _FLAGS = 0, 20
_RATE, _PRECISION = ThresholdTarget(false_errors_per_hour=1), ThresholdTarget(precision=0.8)


def rate_coverage(sessions: int, mean: float, dispersion: float, draws: int) -> float:
    """Return how often the bound is above the true rate; the rates of sessions of an hour have a gamma distribution.

    The variance of the counts is `dispersion` times their mean; 1 stands for equal sessions.
    """
    chance = np.random.default_rng(_SEED)
    size = (draws, sessions)
    spread = dispersion - 1
    rates = chance.gamma(mean / spread, spread, size) if spread else np.full(size, mean)
    holds = 0
    for drawn in chance.poisson(rates):
        counts = [Counts(hours=1.0, false=int(false), right=0, labelled=1) for false in drawn]
        holds += estimate_and_bound(counts, _RATE)[1] >= mean
    return holds / draws


def share_coverage(sessions: int, share: float, correlation: float, draws: int) -> float:
    """Return how often the bound is above the true share of false flags, with 20 flags a session.

    The shares of sessions have a beta distribution; `correlation` is that of two flags of one session.
    """
    chance = np.random.default_rng(_SEED)
    size = (draws, sessions)
    weight = 1 / correlation - 1 if correlation else 0.0
    shares = chance.beta(share * weight, (1 - share) * weight, size) if correlation else np.full(size, share)
    holds = 0
    for drawn in chance.binomial(_FLAGS, shares):
        counts = [Counts(hours=1.0, false=int(false), right=_FLAGS - int(false), labelled=1) for false in drawn]
        holds += estimate_and_bound(counts, _PRECISION)[1] >= share
    return holds / draws


def main(draws: int) -> None:
    """Print how often the bounds hold, in percent."""
    numbers = (6, 8, 12, 20)
    print("sessions:", *numbers)
    for mean, dispersion in ((1, 1), (1, 2), (1, 4), (3, 2), (3, 4)):
        found = [f"{rate_coverage(sessions, mean, dispersion, draws):.1%}" for sessions in numbers]
        print(f"rate, mean {mean}, dispersion {dispersion}:", *found)
    for share, correlation in ((0.2, 0.0), (0.2, 0.1), (0.2, 0.3), (0.1, 0.3)):
        found = [f"{share_coverage(sessions, share, correlation, draws):.1%}" for sessions in numbers]
        print(f"share of false {share}, correlation {correlation}:", *found)


if __name__ == "__main__":
    main(int(sys.argv[1]))
