"""Where a decision's time goes, step by step, and who is told of each step."""

from collections.abc import Callable

from norm_core.engines.request_context import Deadline
from norm_core.records.provenance import LatencySegment

STEPS = ("observe", "veto", "retrieve", "choose", "justify", "explain")

Told = Callable[[str], None]


class StageTimer:
    """Contiguous segments from asking to answering; a limit that has passed raises at the next step."""

    def __init__(self, deadline: Deadline, told: Told | None = None) -> None:
        self._limit, self._told = deadline, told
        self._since_ns = deadline.asked_ns
        self._name = ""
        self._spent_ns: dict[str, int] = {}

    def enter(self, name: str) -> None:
        """Time counts for this step from now on; time before the first step counts for it."""
        now_ns = self._limit.clock.now_ns()
        self._spent_ns.setdefault(name, 0)
        if self._name:
            self._spent_ns[self._name] += now_ns - self._since_ns
            self._since_ns = now_ns
        self._name = name
        if self._told:
            self._told(name)

    def end(self, now_ns: int) -> tuple[LatencySegment, ...]:
        """The segments, which sum to now_ns less when it was asked."""
        spent = dict(self._spent_ns) or {STEPS[0]: 0}
        last = self._name or STEPS[0]
        spent[last] += now_ns - self._since_ns
        return tuple(LatencySegment(name=name, duration_ns=duration) for name, duration in spent.items())
