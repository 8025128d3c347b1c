"""Whether a node's latency stays within what was forecast for its machine: p95 over the latest answers."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import numpy as np
from pydantic import Field

from norm_core.records.status import Counter
from norm_core.runtime.config import LIVE, Config
from norm_core.runtime.program import PROGRAM

# Over how many answers p95 is computed, and from how many on it is compared.
LATEST, LEAST = 100, 20


class BudgetConfig(Config):
    """The latency that a node may take."""

    p95_ms: float = Field(
        default=0.0,
        ge=0,
        le=3_600_000,
        allow_inf_nan=False,
        description="the status warns where p95 of the node's latency is above; 0 for never",
        json_schema_extra=LIVE,
    )


class LatencyBudget:
    """The latest latencies of one kind of work; any thread may call it."""

    def __init__(self, name: str, remedy: str) -> None:
        """`name` is what is timed, as a counter names it; `remedy` says what to change where it takes too long."""
        self.name, self._remedy = name, remedy
        self._lock = Lock()
        self._latest_ms: deque[float] = deque(maxlen=LATEST)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add what the block takes, unless it raises."""
        began_s = time.monotonic()
        yield
        self.add(1e3 * (time.monotonic() - began_s))

    def add(self, latency_ms: float) -> None:
        """Add a latency."""
        with self._lock:
            self._latest_ms.append(latency_ms)

    def p95_ms(self) -> tuple[float, int] | None:
        """Return p95 and over how many latencies; None before the first."""
        with self._lock:
            latest = list(self._latest_ms)
        return (float(np.percentile(latest, 95)), len(latest)) if latest else None

    def counters(self) -> tuple[Counter, ...]:
        """Return p95 in microseconds and over how many latencies, as counters of the status."""
        found = self.p95_ms()
        if found is None:
            return ()
        p95_ms, count = found
        return (
            Counter(name=f"latency_p95_us_{self.name}", count=round(1e3 * p95_ms)),
            Counter(name=f"latency_count_{self.name}", count=count),
        )

    def reason(self, budget_ms: float) -> str:
        """Say that the live p95 is over the budget, and what to do; empty where it is not, or none is set."""
        found = self.p95_ms()
        if not budget_ms or found is None or found[1] < LEAST or found[0] <= budget_ms:
            return ""
        p95_ms, count = found
        return (
            f"budget: {self.name}: live p95 of {p95_ms:.0f} ms over the last {count} is over the budget of "
            f"{budget_ms:.0f} ms; {self._remedy}, end what else runs on this machine, or measure it again with "
            f"{PROGRAM} calibrate budget"
        )
