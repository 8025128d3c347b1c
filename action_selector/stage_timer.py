"""Measure the steps of a decision, and report each step to an observer."""

from collections.abc import Callable

from norm_core.engines.request_context import Deadline
from norm_core.records.provenance import LatencySegment

STEPS = ("observe", "veto", "retrieve", "choose", "justify", "explain")

StepObserver = Callable[[str], None]


class StageTimer:
    """Contiguous time segments of one decision. An expired deadline raises at the next step."""

    def __init__(self, deadline: Deadline, on_step: StepObserver | None = None) -> None:
        self._limit, self._on_step = deadline, on_step
        self._since_ns = deadline.asked_ns
        self._name = ""
        self._spent_ns: dict[str, int] = {}

    def enter(self, name: str) -> None:
        """Start a step. Time before the first step counts towards it."""
        now_ns = self._limit.clock.now_ns()
        self._spent_ns.setdefault(name, 0)
        if self._name:
            self._spent_ns[self._name] += now_ns - self._since_ns
            self._since_ns = now_ns
        self._name = name
        if self._on_step:
            self._on_step(name)

    def end(self, now_ns: int) -> tuple[LatencySegment, ...]:
        """End the last step. The segments sum to `now_ns` minus the start."""
        spent = dict(self._spent_ns) or {STEPS[0]: 0}
        last = self._name or STEPS[0]
        spent[last] += now_ns - self._since_ns
        return tuple(LatencySegment(name=name, duration_ns=duration) for name, duration in spent.items())
