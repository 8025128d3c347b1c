"""One request: its deadline, its latency by segment, and its usage."""

from dataclasses import fields
from threading import Event

from norm_core.engines.errors import PastDeadlineError
from norm_core.engines.reply import Usage
from norm_core.records.provenance import LatencySegment
from norm_core.runtime.time import NS_PER_MS, Clock, ns_to_s

# The segments of the latency of an answer.
QUEUE = "queue"
ENCODE = "encode"
PREFILL = "prefill"
DECODE = "decode"
PARSE = "parse"
# All segments in order.
SEGMENTS = (QUEUE, ENCODE, PREFILL, DECODE, PARSE)


class Deadline:
    """The start and end of a request in its clock's time; any thread may cancel it."""

    def __init__(self, clock: Clock, deadline_ns: int | None = None, cancelled: Event | None = None) -> None:
        self.clock = clock
        self.asked_ns = clock.now_ns()
        self.deadline_ns = deadline_ns
        self._cancelled = cancelled or Event()

    def from_now(self, end_ns: int | None = None) -> "Deadline":
        """Return a deadline for a further question that starts now, with the same end or that of `end_ns`."""
        return Deadline(self.clock, self.deadline_ns if end_ns is None else end_ns, self._cancelled)

    def cancel(self) -> None:
        """End the request at its next check, as if its deadline had passed."""
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled.is_set()

    def remaining_s(self) -> float | None:
        """Return the time left in seconds, at least 0; None without a deadline."""
        if self.deadline_ns is None:
            return None
        return max(0.0, ns_to_s(self.deadline_ns - self.clock.now_ns()))

    def check(self) -> None:
        """Raise PastDeadlineError if the deadline has passed or the request was cancelled."""
        if self._cancelled.is_set():
            raise PastDeadlineError("cancelled by the caller")
        if self.deadline_ns is not None and (late_ns := self.clock.now_ns() - self.deadline_ns) >= 0:
            raise PastDeadlineError(f"the deadline passed {late_ns / NS_PER_MS:.0f} ms ago")


class SegmentTimer:
    """The time of one request in contiguous segments; the first starts when the request is made."""

    def __init__(self, deadline: Deadline, first: str) -> None:
        self._deadline = deadline
        self._segment = first
        self._since_ns = deadline.asked_ns
        self._spent_ns = {first: 0}

    def enter_segment(self, segment: str) -> None:
        """Count time for `segment` from now on."""
        self._count_until(self._deadline.clock.now_ns())
        self._segment = segment
        self._spent_ns.setdefault(segment, 0)

    def latency(self, now_ns: int | None = None) -> tuple[LatencySegment, ...]:
        """Return the latency until now; the segments sum to the total."""
        self._count_until(self._deadline.clock.now_ns() if now_ns is None else now_ns)
        return tuple(LatencySegment(name=name, duration_ns=spent_ns) for name, spent_ns in self._spent_ns.items())

    def _count_until(self, now_ns: int) -> None:
        self._spent_ns[self._segment] += now_ns - self._since_ns
        self._since_ns = now_ns


class RequestContext(SegmentTimer):
    """The view of a backend on one request: its deadline, its time by SEGMENTS and its usage."""

    def __init__(self, deadline: Deadline) -> None:
        super().__init__(deadline, QUEUE)
        # The reply, if a backend reads an option from text.
        self.text = ""
        self._spent_ns = dict.fromkeys(SEGMENTS, 0)
        self._usage_counts = {field.name: 0 for field in fields(Usage)}

    def check(self) -> None:
        """Raise PastDeadlineError after the deadline; call it before each step that takes more than milliseconds."""
        self._deadline.check()

    def remaining_s(self) -> float | None:
        """Return the time left in seconds; None without a deadline."""
        return self._deadline.remaining_s()

    def add_usage(self, **counts: int) -> None:
        """Add to the usage; the argument names are those of Usage."""
        for name, count in counts.items():
            self._usage_counts[name] += count

    @property
    def usage(self) -> Usage:
        """The usage so far."""
        return Usage(**self._usage_counts)
