"""Count how often 95 % intervals of a rate hold the true one, in simulated studies.

Run `python benchmarks/study/rate_intervals.py`; it prints a table after some minutes.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from norm_core.evaluation.intervals import percentile_interval
from norm_core.evaluation.quantiles import poisson_interval
from study_desk.analysis.event_rates import PER_MINUTES, event_rate

STUDIES, RESAMPLES, SEED = 2000, 500, 1


def main() -> None:
    """Print a row for each number of participants, events per session and spread of participants' rates."""
    print("participants  events  spread  quasi-Poisson  exact Poisson  bootstrap")
    rng = np.random.default_rng(SEED)
    for participants in (5, 10, 20, 2, 3, 4):
        for mean in (1.0, 5.0):
            for spread in (0.0, 0.5, 1.0):
                own = rng.gamma(spread**-2, spread**2, (STUDIES, participants)) if spread else 1.0
                studies = rng.poisson(mean * own * np.ones((STUDIES, participants)))
                held = np.mean([_holds(counts.tolist(), mean, rng) for counts in studies], axis=0)
                shares = "  ".join(f"{share:12.1%}" for share in held)
                print(f"{participants:12}  {mean:6g}  {spread:6g}  {shares}")


def _holds(counts: Sequence[int], mean: float, rng: np.random.Generator) -> tuple[bool, ...]:
    """Whether each interval of the mean events of a session holds the true mean."""
    number = len(counts)
    rate = event_rate(counts, [float(PER_MINUTES)] * number)
    assert rate is not None
    low, high = poisson_interval(sum(counts))
    resampled = np.asarray(counts)[rng.integers(0, number, (RESAMPLES, number))].mean(axis=1)
    bounds = ((rate.low, rate.high), (low / number, high / number), percentile_interval(resampled))
    return tuple(bool(low <= mean <= high) for low, high in bounds)


if __name__ == "__main__":
    main()
