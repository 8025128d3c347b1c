"""Choose the units to ask the judge about; those whose flag an answer likely changes come first."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from norm_core.records.flag import Evidence
from norm_core.records.record import record
from norm_core.records.status import Counter
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.assessment.finding import Finding, Reason
from norm_monitor.assessment.unit import Unit, UnitKind, units_of
from norm_monitor.assessment.unit_facts import LONGEST_S
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.context.wording import announces_pause, is_unfinished
from norm_monitor.judge.excerpt import UnitView, unit_view

# A unit is judged this long after its end, once the reaction to it is known.
REACTION_NS = 3 * NS_PER_S
# A silence is judged after this time even if it lasts, as a longer one means the same.
LONG_SILENCE_NS = s_to_ns(LONGEST_S)
# A robot that left a pause to a person may speak up to this long after it.
_MAX_PATIENCE_NS = 30 * NS_PER_S
# Units that wait for a consumer; beyond that, those whose flag is least likely to change are dropped.
MAX_DUE = 64
# Units and incidents that are remembered.
_MAX_REMEMBERED = 200
_HOUR_NS = 3600 * NS_PER_S
# Number of hours whose budget a quiet time saves for a busy one.
_SAVED_HOURS = 1 / 60
# Calls an hour that set no ceiling: each unit is due as soon as it can be judged.
NO_CEILING = -1.0
# Calls an hour in place of no ceiling.
_UNLIMITED = 1e12


@record
class JudgeCandidate:
    """A unit that the judge may be asked about, and its incident: for a silence, the turn that ends it."""

    unit: Unit
    incident: str


class JudgeTriggers:
    """Choose units by stamps alone. Findings count at any probability, also those of muted cues.

    All units of an incident are due together. Otherwise an answer could take the flag from a silence without giving
    one to the late answer.
    """

    def __init__(self, calls_per_hour: float) -> None:
        """With a ceiling of 0, no unit is due; with NO_CEILING, each is."""
        self._due: list[tuple[float, UnitView]] = []
        self._not_judged = self._beyond_budget = 0
        self._waiting: dict[str, JudgeCandidate] = {}
        self.set_budget(calls_per_hour)
        self.reset()

    def set_budget(self, calls_per_hour: float) -> None:
        """Change the ceiling; with 0, no unit waits."""
        self._per_hour = _UNLIMITED if calls_per_hour < 0 else calls_per_hour
        self._max_saved = max(1.0, self._per_hour * _SAVED_HOURS)
        if not self._per_hour:
            self._waiting.clear()

    def reset(self) -> None:
        """Forget all units, for example when stamps jump back; due units stay."""
        self._budget = self._max_saved
        self._budget_at_ns: int | None = None
        self._waiting.clear()
        self._decided: OrderedDict[str, None] = OrderedDict()  # asked about, or left out
        self._begun: OrderedDict[str, None] = OrderedDict()  # incidents with a unit that was asked about

    @property
    def counters(self) -> tuple[Counter, ...]:
        """Units that the ceiling left out, and due units that nobody took in time."""
        beyond = Counter(name="units_beyond_judge_budget", count=self._beyond_budget)
        dropped = Counter(name="units_not_judged", count=self._not_judged)
        return tuple(counter for counter in (beyond, dropped) if counter.count)

    def note_window(
        self,
        scene: Scene,
        findings: Sequence[Finding],
        change_of: Callable[[Unit], float] = lambda unit: 0.0,
        reasons_of: Callable[[Unit], Sequence[Reason]] = lambda unit: (),
    ) -> bool:
        """Choose among the units that can be judged now; return whether any is due with this window.

        `change_of` returns how likely an answer changes whether a unit is flagged. The judge is shown the evidence of
        `findings` and of `reasons_of`.
        """
        if not self._per_hour:
            return False
        cited = [finding.unit for finding in findings]
        for candidate in _find_candidates(scene, cited, reasons_of):
            if candidate.unit.unit_id not in self._decided and _can_be_judged(candidate.unit, scene):
                self._waiting[candidate.unit.unit_id] = candidate
        self._add_budget(scene.window.end_ns)
        due = [
            (change, unit_view(unit, scene, _collect_evidence(unit, findings, reasons_of(unit))))
            for change, unit in self._take_waiting(change_of)
        ]
        self._due = sorted([*self._due, *due], key=lambda entry: -entry[0])
        self._not_judged += len(self._due[MAX_DUE:])
        del self._due[MAX_DUE:]
        self._give_up_old(scene)
        return bool(due)

    def take(self, max_count: int = MAX_DUE) -> list[UnitView]:
        """Return due units, each once, those whose flag an answer most likely changes first."""
        due, self._due = self._due[:max_count], self._due[max_count:]
        return [view for _, view in due]

    @property
    def due(self) -> list[str]:
        """The ids of the due units that nobody took yet."""
        return [view.unit.unit_id for _, view in self._due]

    def drop(self, is_closed: Callable[[Unit], bool]) -> None:
        """Drop due units for which an answer would come too late."""
        count, self._due = len(self._due), [entry for entry in self._due if not is_closed(entry[1].unit)]
        self._not_judged += count - len(self._due)

    def _add_budget(self, now_ns: int) -> None:
        """Add the calls that were earned since the last window."""
        if self._budget_at_ns is not None:
            earned = self._per_hour * max(0, now_ns - self._budget_at_ns) / _HOUR_NS
            self._budget = min(self._max_saved, self._budget + earned)
        self._budget_at_ns = now_ns if self._budget_at_ns is None else max(now_ns, self._budget_at_ns)

    def _take_waiting(self, change_of: Callable[[Unit], float]) -> Iterator[tuple[float, Unit]]:
        """Yield the waiting units that the budget allows, each with the chance that an answer changes its flag."""
        changes = {unit_id: change_of(candidate.unit) for unit_id, candidate in self._waiting.items()}

        def rank(candidate: JudgeCandidate) -> tuple[bool, float, int, str]:
            unit = candidate.unit
            return candidate.incident not in self._begun, -changes[unit.unit_id], unit.onset_ns, unit.unit_id

        while self._waiting:
            first = min(self._waiting.values(), key=rank)
            if self._budget < 1 and first.incident not in self._begun:
                return
            self._mark_decided(first.unit)
            self._begun[first.incident] = None
            _drop_oldest(self._begun)
            self._budget -= 1
            yield changes[first.unit.unit_id], first.unit

    def _give_up_old(self, scene: Scene) -> None:
        """Give up units that no window shows any more."""
        ended = [
            waiting.unit
            for waiting in self._waiting.values()
            if (waiting.unit.offset_ns or scene.end_ns) < scene.start_ns
        ]
        for unit in ended:
            self._mark_decided(unit)
            self._beyond_budget += 1

    def _mark_decided(self, unit: Unit) -> None:
        """Let a unit wait no longer, and remember it."""
        del self._waiting[unit.unit_id]
        self._decided[unit.unit_id] = None
        _drop_oldest(self._decided)


def _collect_evidence(unit: Unit, findings: Iterable[Finding], reasons: Iterable[Reason]) -> tuple[Evidence, ...]:
    """Return the evidence of cues on a unit; the talk itself shows the length of a silence."""
    own = [finding.reason for finding in findings if finding.unit.unit_id == unit.unit_id]
    shown = [*own, *(() if unit.kind is UnitKind.SILENCE else reasons)]
    return tuple(fact for reason in shown for fact in reason.evidence)


def _find_candidates(
    scene: Scene, cited: Iterable[Unit], reasons_of: Callable[[Unit], Sequence[Reason]]
) -> Iterator[JudgeCandidate]:
    """Yield the units worth a question.

    A person's turn is one if the robot talks into it or leaves it open, or if a cue finds something in it; nearly
    all others are ordinary.
    """
    units = list(units_of(scene, scene.start_ns))
    robot_turns = [unit for unit in units if unit.kind is UnitKind.ROBOT_TURN]
    left_open = {Unit.of_turn(turn).unit_id for turn in scene.user_turns if _is_left_open(turn, scene)}
    cited_units = {unit.unit_id: unit for unit in cited if unit.kind in {UnitKind.SIGHTING, UnitKind.PERSON_TURN}}
    earlier = (unit for unit in units_of(scene, scene.start_ns - _MAX_PATIENCE_NS) if unit.kind is UnitKind.PERSON_TURN)
    cited_units |= {unit.unit_id: unit for unit in earlier if reasons_of(unit)}
    for unit in {**cited_units, **{unit.unit_id: unit for unit in units}}.values():
        incident = _find_incident(unit, robot_turns)
        is_ordinary = incident == unit.unit_id and unit.unit_id not in left_open | cited_units.keys()
        if unit.kind is not UnitKind.PERSON_TURN or not is_ordinary:
            yield JudgeCandidate(unit=unit, incident=incident)


def _find_incident(unit: Unit, robot_turns: Sequence[Unit]) -> str:
    """Return the id of the robot turn that ends a silence or interrupts a person, else the id of the unit itself."""
    for turn in robot_turns:
        until_ns = turn.onset_ns + 1 if unit.offset_ns is None else unit.offset_ns
        if unit.is_ended_by(turn) or (unit.kind is UnitKind.PERSON_TURN and unit.onset_ns < turn.onset_ns < until_ns):
            return turn.unit_id
    return unit.unit_id


def _is_left_open(turn: Turn, scene: Scene) -> bool:
    """Whether the words of a person announce more, and the robot does not speak next."""
    following = next((other for other in scene.turns if other.start_ns >= turn.end_ns), None)
    return (is_unfinished(turn.text) or announces_pause(turn.text)) and not (following and following.is_robot)


def _can_be_judged(unit: Unit, scene: Scene) -> bool:
    """Whether the unit is over, and the reaction to it is known."""
    if scene.input_ended:
        return True
    if unit.kind is UnitKind.SILENCE and unit.offset_ns is None:
        return scene.end_ns >= unit.onset_ns + LONG_SILENCE_NS
    return unit.offset_ns is not None and scene.end_ns >= unit.offset_ns + REACTION_NS


def _drop_oldest(entries: OrderedDict[str, Any]) -> None:
    """Drop the oldest entries beyond the limit."""
    while len(entries) > _MAX_REMEMBERED:
        entries.popitem(last=False)
