"""One request on its way: how long it may take, where its time went and what it used."""

from threading import Event

from norm_core.engines.errors import PastDeadlineError
from norm_core.engines.reply import Usage
from norm_core.records.provenance import LatencySegment
from norm_core.runtime.time import NS_PER_MS, Clock, ns_to_s

# Where an answer's time can go, in this order.
QUEUE, ENCODE, PREFILL, DECODE, PARSE = SEGMENTS = ("queue", "encode", "prefill", "decode", "parse")


class Deadline:
    """From when and until when a request may take, in its clock's time; any thread may cancel it."""

    def __init__(self, clock: Clock, deadline_ns: int | None = None, cancelled: Event | None = None) -> None:
        self.clock = clock
        self.asked_ns = clock.now_ns()
        self.deadline_ns = deadline_ns
        self._cancelled = cancelled or Event()

    def renewed(self) -> "Deadline":
        """The same end for a further question, which is asked now."""
        return Deadline(self.clock, self.deadline_ns, self._cancelled)

    def cancel(self) -> None:
        """Lets the request end, at its next check, as if its deadline had passed."""
        self._cancelled.set()

    def remaining_s(self) -> float | None:
        """The time left, never negative; None without a deadline."""
        if self.deadline_ns is None:
            return None
        return max(0.0, ns_to_s(self.deadline_ns - self.clock.now_ns()))

    def check(self) -> None:
        """Raises where the request need not go on."""
        if self._cancelled.is_set():
            raise PastDeadlineError("cancelled by whoever asked")
        if self.deadline_ns is not None and (late_ns := self.clock.now_ns() - self.deadline_ns) >= 0:
            raise PastDeadlineError(f"the deadline passed {late_ns / NS_PER_MS:.0f} ms ago")


class RequestContext:
    """What a backend is handed with each request: it checks the limit, and says what it does and uses."""

    def __init__(self, deadline: Deadline) -> None:
        self._limit = deadline
        self._segment, self._since_ns = QUEUE, deadline.asked_ns
        self._spent_ns = dict.fromkeys(SEGMENTS, 0)
        self._used = dict.fromkeys(("prompt_tokens", "cached_tokens", "completion_tokens", "images", "retries"), 0)

    def check(self) -> None:
        """Raises past the deadline; call it before each step that takes more than some milliseconds."""
        self._limit.check()

    def remaining_s(self) -> float | None:
        """The time left, never negative; None without a deadline."""
        return self._limit.remaining_s()

    def enter_segment(self, segment: str) -> None:
        """From now on time counts for segment, one of SEGMENTS."""
        now_ns = self._limit.clock.now_ns()
        self._spent_ns[self._segment] += now_ns - self._since_ns
        self._segment, self._since_ns = segment, now_ns

    def add_usage(self, **counts: int) -> None:
        """Adds to what was used; the names are those of Usage."""
        for name, count in counts.items():
            self._used[name] += count

    @property
    def usage(self) -> Usage:
        return Usage(**self._used)

    def latency(self) -> tuple[LatencySegment, ...]:
        """Where the time went until now; the segments sum to the whole."""
        self.enter_segment(self._segment)
        return tuple(LatencySegment(name=name, duration_ns=spent) for name, spent in self._spent_ns.items())
