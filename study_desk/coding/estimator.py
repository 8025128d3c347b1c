"""One figure of agreement, and its interval by resampling whole sessions."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from norm_core.evaluation.agreement_coefficients import Tally
from norm_core.evaluation.intervals import percentile_interval
from norm_core.records.record import record
from norm_core.runtime.time import s_to_ns

T = TypeVar("T")


TOLERANCES_S = (0.5, 1.0, 2.0, 5.0)


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


class Estimator:
    """Compute figures over sessions, and their intervals by resampling whole sessions."""

    def __init__(self, settings: AgreementSettings) -> None:
        self.settings = settings

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
        coefficient: Callable[[Tally], float | None],
    ) -> AgreementRow:
        """Compute a coefficient over the units of all sessions."""
        estimate = self.estimate(by_session, lambda chosen: coefficient(summed(chosen)))
        return AgreementRow(
            comparison=comparison, coders=coders, polarity=names[0], attribute=names[1], measure=measure,
            tolerance_s=tolerance_s, units=summed(by_session).total(), estimate=estimate,
        )  # fmt: skip

    def estimate(self, by_session: Sequence[T], figure: Callable[[Sequence[T]], float | None]) -> Estimate:
        """Compute a figure over sessions, with its interval."""
        value = figure(by_session)
        if len(by_session) < 2 or value is None:
            return Estimate(value=value)
        rng = random.Random(self.settings.seed)
        drawn = (figure(rng.choices(by_session, k=len(by_session))) for _ in range(self.settings.resamples))
        values = [v for v in drawn if v is not None]
        low, high = percentile_interval(values) if values else (None, None)
        return Estimate(value=value, low=low, high=high)


def summed(tallies: Iterable[Tally]) -> Tally:
    """Add the tallies of sessions."""
    total: Tally = Counter()
    for tally in tallies:
        total.update(tally)
    return total
