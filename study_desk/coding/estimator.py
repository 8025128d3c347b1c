"""One figure of agreement, and its interval by resampling whole sessions."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from norm_core.evaluation.agreement_coefficients import Array, Samples, Tally, number_or_none
from norm_core.evaluation.intervals import percentile_interval
from norm_core.records.record import record
from norm_core.runtime.time import s_to_ns

TOLERANCES_S = (0.5, 1.0, 2.0, 5.0)
_BLOCK = 1000


@record
class AgreementSettings:
    """The tolerances, frame, number of bootstrap samples and seed of a computation."""

    tolerances_s: tuple[float, ...] = TOLERANCES_S
    kappa_tolerance_s: float = 1.0
    frame_s: float = 1.0
    resamples: int = 1000
    seed: int = 0


@record
class Estimate:
    """A figure with its 95 % bootstrap interval over sessions. The bounds are None for fewer than two sessions."""

    value: float | None
    low: float | None = None
    high: float | None = None


@record
class AgreementRow:
    """One figure: its coders, attribute and measure."""

    comparison: str  # human-human or monitor-human
    coders: tuple[str, ...]
    polarity: str  # or all
    attribute: str  # or all
    measure: str
    tolerance_s: float | None
    units: int  # number of events or frames behind it
    estimate: Estimate
    condition: str = ""  # empty: all sessions


@record
class Draws:
    """Samples of sessions with replacement: one row a sample, with the sessions drawn, and how often each was."""

    chosen: NDArray[np.intp]
    weights: Array


class Estimator:
    """Compute figures over sessions, and their intervals by resampling whole sessions."""

    def __init__(self, settings: AgreementSettings) -> None:
        self.settings = settings
        self._resamples: dict[int, list[Draws]] = {}

    @property
    def kappa_tolerance_ns(self) -> int:
        """The tolerance of kappa over events."""
        return s_to_ns(self.settings.kappa_tolerance_s)

    def row(  # noqa: PLR0917
        self,
        comparison: str,
        coders: tuple[str, ...],
        names: tuple[str, str],
        measure: str,
        tolerance_s: float,
        by_session: list[Tally],
        coefficients: Callable[[Samples], Array],
    ) -> AgreementRow:
        """Compute a coefficient over the units of all sessions."""
        units = list(summed(by_session))
        counts = np.array([[float(tally[unit]) for unit in units] for tally in by_session])
        estimate = self.estimate(
            len(by_session), lambda draws: coefficients(dict(zip(units, (draws.weights @ counts).T, strict=True)))
        )
        return AgreementRow(
            comparison=comparison, coders=coders, polarity=names[0], attribute=names[1], measure=measure,
            tolerance_s=tolerance_s, units=summed(by_session).total(), estimate=estimate,
        )  # fmt: skip

    def estimate(self, sessions: int, figures: Callable[[Draws], Array]) -> Estimate:
        """Compute a figure over sessions, with its interval. `figures` gives one a sample, NaN where undefined."""
        value = number_or_none(figures(_draws(np.arange(sessions)[None])))
        if sessions < 2 or value is None:
            return Estimate(value=value)
        if sessions not in self._resamples:
            self._resamples[sessions] = list(self._resample(sessions))
        drawn = [np.broadcast_to(figures(draws), len(draws.chosen)) for draws in self._resamples[sessions]]
        values = np.concatenate(drawn)
        values = values[~np.isnan(values)]
        low, high = percentile_interval(values) if len(values) else (None, None)
        return Estimate(value=value, low=low, high=high)

    def _resample(self, sessions: int) -> Iterator[Draws]:
        """Draw as the seed says, in blocks that fit in memory."""
        rng = random.Random(self.settings.seed)
        for left in range(self.settings.resamples, 0, -_BLOCK):
            block = min(left, _BLOCK)
            yield _draws(np.array([rng.choices(range(sessions), k=sessions) for _ in range(block)]))


def _draws(chosen: NDArray[np.intp]) -> Draws:
    weights = np.zeros(chosen.shape)
    np.add.at(weights, (np.arange(len(chosen))[:, None], chosen), 1)
    return Draws(chosen=chosen, weights=weights)


def summed(tallies: Iterable[Tally]) -> Tally:
    """Add the tallies of sessions."""
    total: Tally = Counter()
    for tally in tallies:
        total.update(tally)
    return total
