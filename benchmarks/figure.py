"""What a benchmark measures."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A value beside a named peer or floor of the same run; `low` and `high` bound the ratio over all runs."""

    name: str
    value: float
    unit: str
    against: str
    ratio: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of_runs(cls, name: str, unit: str, values: Sequence[float], against: str, ratios: Sequence[float]) -> "Figure":
        """Return the medians of several runs, and the range of their ratios."""
        low, ratio, high = (round(measure(ratios), 3) for measure in (min, statistics.median, max))
        value = round(statistics.median(values), 4)
        return cls(name=name, value=value, unit=unit, against=against, ratio=ratio, low=low, high=high)

    def __str__(self) -> str:
        """Return the figure as a row of a table."""
        bounds = "" if self.low is None else f" ({self.low:g} to {self.high:g})"
        return f"{self.name:24} {self.value:>10g} {self.unit:4} {self.ratio:g} times {self.against}{bounds}"
