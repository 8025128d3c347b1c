"""Select the windows for the judge: those with a new cue finding, and one at a slow regular interval."""

from collections import OrderedDict, deque
from collections.abc import Iterable

from norm_core.records.status import Counter
from norm_core.records.window import Window
from norm_core.runtime.time import s_to_ns
from norm_monitor.cues.finding import Finding

_REMEMBERED = 1_000
# How many windows wait for a consumer; beyond that, the oldest are dropped.
MOST_DUE = 64


class JudgeTriggers:
    """Trigger on any cue finding, at any confidence; the judge decides about those below the floor for a flag."""

    def __init__(self, every_s: float) -> None:
        """With `every_s` 0, only cues trigger."""
        self._every_ns = s_to_ns(every_s)
        self._due: deque[Window] = deque()
        self._let_go = 0
        self.reset()

    def reset(self) -> None:
        """Forget all findings, for example when the clock was set back; due windows stay."""
        self._last_ns: int | None = None
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()

    @property
    def counters(self) -> tuple[Counter, ...]:
        """The number of windows that were due and had no room, once there are any."""
        return (Counter(name="windows_not_judged", count=self._let_go),) if self._let_go else ()

    def note_window(self, window: Window, findings: Iterable[Finding]) -> bool:
        """Queue the window if it is worth judging; return whether it is."""
        new = [key for f in findings if (key := (f.cue_id, f.anchor)) not in self._seen]
        self._seen.update(dict.fromkeys(new))
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        beat = self._every_ns > 0 and (self._last_ns is None or window.end_ns - self._last_ns >= self._every_ns)
        if not (new or (beat and window.utterances)):
            return False
        self._last_ns = window.end_ns
        self._due.append(window)
        if len(self._due) > MOST_DUE:
            self._due.popleft()
            self._let_go += 1
        return True

    def take(self) -> list[Window]:
        """Return the due windows, each once."""
        due = list(self._due)
        self._due.clear()
        return due
