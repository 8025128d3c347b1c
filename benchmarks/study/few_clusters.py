"""Count how often 95 % intervals of a rate ratio from cluster-robust errors hold the true one, by clusters.

Run `python benchmarks/study/few_clusters.py`; it prints a table within a minute.
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from norm_core.evaluation.quantiles import t_quantile

STUDIES, SEED = 20_000, 1
MEAN, SPREAD, SESSIONS = 5.0, 0.5, 2  # events in a session, variation of participants' own rates, sessions of each


def main() -> None:
    """Print a row for each number of clusters: participants in one condition each, and in both."""
    print("clusters  between, normal  between, t  within, normal  within, t")
    rng = np.random.default_rng(SEED)
    for clusters in (4, 6, 8, 10, 15, 20, 30, 40, 60):
        own = MEAN * rng.gamma(SPREAD**-2, SPREAD**2, (STUDIES, clusters, 1))
        shares = []
        for is_within in (False, True):
            counts = rng.poisson(own * np.ones(SESSIONS)).astype(float)
            in_b = np.zeros((clusters, SESSIONS))
            in_b[(slice(None), slice(1, None)) if is_within else (slice(clusters // 2, None),)] = 1
            shares += [_held(counts, in_b, reach) for reach in (1.959964, t_quantile(0.975, clusters - 1))]
        print(f"{clusters:8}" + "".join(f"{share:14.1%}" for share in shares))


def _held(counts: NDArray[np.float64], in_b: NDArray[np.float64], reach: float) -> float:
    """Return the share of studies whose interval of the log of the rate ratio holds 0."""
    logs, influence = np.zeros(len(counts)), np.zeros(counts.shape[:2])
    for sign, member in ((-1, 1 - in_b), (1, in_b)):
        total = np.maximum((counts * member).sum(axis=(1, 2)), 0.5)
        mean = total / member.sum()
        logs += sign * np.log(mean)
        influence += sign * ((counts - mean[:, None, None]) * member).sum(axis=2) / total[:, None]
    number = counts.shape[1]
    error = np.sqrt(number / (number - 1) * (influence**2).sum(axis=1))
    return float((np.abs(logs) <= reach * error).mean())


if __name__ == "__main__":
    main()
