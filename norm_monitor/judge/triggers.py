"""Choose the units that the judge is asked about: those in doubt first, within a budget of calls an hour."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from norm_core.records.status import Counter
from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.scene import Scene
from norm_monitor.cues.finding import Finding
from norm_monitor.judge.excerpt import UnitView, unit_view
from norm_monitor.units.unit import Unit, UnitKind, units_of

# How long after its end a unit is judged, so that the reaction to it is known.
REACTION_NS = 3 * NS_PER_S
# A silence is judged after this time even if it lasts.
LONG_SILENCE_NS = 6 * NS_PER_S
# How many units wait for a consumer; beyond that, the oldest are dropped.
MOST_DUE = 64
_REMEMBERED = 200
_HOUR_NS = 3600 * NS_PER_S
# The share of an hour's budget that a quiet time saves up for a busy one.
_SAVED_UP = 1 / 60


class JudgeTriggers:
    """Choose units by stamps alone. Findings count at any confidence, also those of muted cues."""

    def __init__(self, calls_per_hour: float) -> None:
        """With a budget of 0, no unit is due."""
        self._due: deque[UnitView] = deque()
        self._dropped = self._beyond_budget = 0
        self._waiting: dict[str, Unit] = {}
        self.set_budget(calls_per_hour)
        self.reset()

    def set_budget(self, calls_per_hour: float) -> None:
        """Change the budget; without one, no unit waits."""
        self._per_hour, self._most_saved = calls_per_hour, max(1.0, calls_per_hour * _SAVED_UP)
        if calls_per_hour <= 0:
            self._waiting.clear()

    def reset(self) -> None:
        """Forget all units, for example when the clock was set back; due units stay."""
        self._budget = self._most_saved
        self._budget_at_ns: int | None = None
        self._waiting.clear()
        self._decided: OrderedDict[str, None] = OrderedDict()  # asked about, or left out
        self._findings: OrderedDict[str, dict[tuple[str, str], Finding]] = OrderedDict()

    @property
    def counters(self) -> tuple[Counter, ...]:
        """Units that the budget left out, and due units that nobody took in time."""
        beyond = Counter(name="units_beyond_judge_budget", count=self._beyond_budget)
        dropped = Counter(name="units_not_judged", count=self._dropped)
        return tuple(counter for counter in (beyond, dropped) if counter.count)

    @property
    def has_due(self) -> bool:
        """Whether a due unit waits to be taken."""
        return bool(self._due)

    def note_window(
        self, scene: Scene, findings: Iterable[Finding], probability_of: Callable[[Unit], float] = lambda unit: 0.0
    ) -> bool:
        """Choose among the units that can be judged now; return whether any is due with this window.

        `probability_of` tells how likely a unit is to be flagged.
        """
        if self._per_hour <= 0:
            return False
        for one in findings:
            self._findings.setdefault(one.unit.unit_id, {})[one.cue_id, one.anchor] = one
        _keep_newest(self._findings)
        self._waiting.update((unit.unit_id, unit) for unit in self._ripe_units(scene))
        self._earn(scene.window.end_ns)
        due = list(self._chosen(scene, probability_of))
        self._due += due
        while len(self._due) > MOST_DUE:
            self._due.popleft()
            self._dropped += 1
        self._leave_out(scene)
        return bool(due)

    def take(self) -> list[UnitView]:
        """Return the due units, each once."""
        due = list(self._due)
        self._due.clear()
        return due

    def _ripe_units(self, scene: Scene) -> Iterator[Unit]:
        cited = (one.unit for findings in self._findings.values() for one in findings.values())
        sightings = [unit for unit in cited if unit.kind is UnitKind.SIGHTING]
        for unit in (*units_of(scene, scene.start_ns), *sightings):
            if unit.unit_id not in self._decided and _is_ripe(unit, scene):
                yield unit

    def _earn(self, now_ns: int) -> None:
        if self._budget_at_ns is not None:
            earned = self._per_hour * max(0, now_ns - self._budget_at_ns) / _HOUR_NS
            self._budget = min(self._most_saved, self._budget + earned)
        self._budget_at_ns = now_ns if self._budget_at_ns is None else max(now_ns, self._budget_at_ns)

    def _chosen(self, scene: Scene, probability_of: Callable[[Unit], float]) -> Iterator[UnitView]:
        def doubt(unit: Unit) -> float:
            """Return how undecided a unit is: 0 if nothing is known, 1 at a probability of one half."""
            likely = probability_of(unit)
            return 1 - abs(2 * likely - 1) if likely else 0.0

        while self._waiting and self._budget >= 1:
            unit = min(self._waiting.values(), key=lambda one: (-doubt(one), one.onset_ns, one.unit_id))
            self._decide(unit)
            self._budget -= 1
            yield unit_view(unit, scene, tuple(self._findings.get(unit.unit_id, {}).values()))

    def _leave_out(self, scene: Scene) -> None:
        """Give up the units that no window shows any more."""
        for unit in [one for one in self._waiting.values() if one.onset_ns < scene.start_ns]:
            self._decide(unit)
            self._beyond_budget += 1

    def _decide(self, unit: Unit) -> None:
        del self._waiting[unit.unit_id]
        self._decided[unit.unit_id] = None
        _keep_newest(self._decided)


def _is_ripe(unit: Unit, scene: Scene) -> bool:
    """Whether the unit is over, and the reaction to it is known."""
    if scene.input_ended:
        return True
    if unit.kind is UnitKind.SILENCE and scene.end_ns >= unit.onset_ns + LONG_SILENCE_NS:
        return True
    return unit.offset_ns is not None and scene.end_ns >= unit.offset_ns + REACTION_NS


def _keep_newest(known: OrderedDict[str, Any]) -> None:
    while len(known) > _REMEMBERED:
        known.popitem(last=False)


# By how many answers the share is counted, and from which share on it is told.
LATEST, LEAST, SHARE = 20, 5, 0.2


class LateAnswers:
    """Remember of the latest answers which were too late to count."""

    def __init__(self) -> None:
        self._late: deque[bool] = deque(maxlen=LATEST)

    def add(self, is_late: bool) -> None:
        """Add an answer."""
        self._late.append(is_late)

    @property
    def reason(self) -> str:
        """What is wrong and what to do, once more than a fifth of the latest answers were late; else empty."""
        late, count = sum(self._late), len(self._late)
        if count < LEAST or late <= SHARE * count:
            return ""
        return (
            f"judge: more than {SHARE:.0%} of its latest answers came after their unit's flag had closed, so they "
            "changed nothing; name a smaller model in judge.model, lower judge.images or judge.calls_per_hour, or "
            "raise fusion.open_s"
        )
