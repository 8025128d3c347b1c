"""Which windows are worth a model's time: those in which a cue sees something new, and one on every slow beat."""

from collections import OrderedDict, deque
from collections.abc import Iterable

from norm_core.records.status import Counter
from norm_core.records.window import Window
from norm_core.runtime.time import s_to_ns
from norm_monitor.cues.finding import Finding

_REMEMBERED = 1_000
# How many windows wait for whoever takes them; where nobody does, the oldest go.
MOST_DUE = 64


class JudgeTriggers:
    """A cue triggers by anything it finds, however unsure; what is below the floor for a flag is the judge's to say."""

    def __init__(self, every_s: float) -> None:
        """An every_s of 0 leaves it to the cues alone."""
        self._every_ns = s_to_ns(every_s)
        self._due: deque[Window] = deque()
        self._let_go = 0
        self.reset()

    def reset(self) -> None:
        """Forget what was seen, as where the clock was set back; windows that are due stay so."""
        self._last_ns: int | None = None
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()

    @property
    def counters(self) -> tuple[Counter, ...]:
        return (Counter(name="windows_not_judged", count=self._let_go),) if self._let_go else ()

    def note_window(self, window: Window, findings: Iterable[Finding]) -> bool:
        """Note the window where it is worth judging; whether it is."""
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
        """What is due, once."""
        due = list(self._due)
        self._due.clear()
        return due
