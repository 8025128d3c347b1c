"""The answers and notes that the judge owes."""

from collections import deque
from collections.abc import Collection

from norm_core.records.outcome import Outcome
from norm_monitor.assessment.fusion import Fusion
from norm_monitor.assessment.unit import Unit, UnitJudgement
from norm_monitor.judge.excerpt import UnitView
from norm_monitor.judge.judge import NoteAnswer, NoteRequest
from norm_monitor.judge.triggers import JudgeTriggers

# Answers that are waited for at the end of the input.
MAX_OWED = 256


class JudgeDebts:
    """Hand out units and notes to ask the judge about, and track which answers are still owed."""

    def __init__(self, triggers: JudgeTriggers, fusion: Fusion) -> None:
        """Take due units from `triggers`, and ask `fusion` which units are open and flagged."""
        self._triggers, self._fusion = triggers, fusion
        self._units: dict[str, UnitView | None] = {}  # units without an answer, oldest first; None once forgotten
        self._possible_notes: dict[str, NoteRequest] = {}  # for units that may yet be flagged
        self._notes: dict[str, None] = {}  # units whose note was asked for
        self._timed_out: deque[str] = deque(maxlen=MAX_OWED)
        self.notes_after_close = 0

    def reset(self) -> None:
        """Drop all debts, as a new timeline begins."""
        for debts in (self._units, self._possible_notes, self._notes):
            debts.clear()

    def forget(self) -> None:
        """Drop the talk of all units; their answers are still owed."""
        self._units = dict.fromkeys(self._units)
        self._possible_notes.clear()

    @property
    def are_open(self) -> bool:
        """Whether an answer or a note is owed, or due to be asked for."""
        return bool(self._units or self._triggers.due or self._due_notes or self._notes)

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The ids of the units that lack an answer or a note, or never got one in time."""
        return (*self._units, *self._timed_out, *self._triggers.due, *self._due_notes, *self._notes)

    @property
    def _due_notes(self) -> list[str]:
        """The units that have a flag and lack its note."""
        is_flagged = self._fusion.is_flagged_by_judge
        return [unit_id for unit_id, request in self._possible_notes.items() if is_flagged(request.view.unit)]

    def ask_units(self, max_count: int, since_ns: int) -> list[UnitView]:
        """Return due units for the judge, without those whose view shows anything from before `since_ns`."""
        views = [view for view in self._triggers.take(max_count) if view.window.start_ns > since_ns]
        self._units |= {view.unit.unit_id: view for view in views}
        for unit_id in list(self._units)[:-MAX_OWED]:  # a judge that never answers
            del self._units[unit_id]
        return views

    def ask_notes(self, max_count: int) -> list[NoteRequest]:
        """Return flagged units whose note is to be written."""
        unit_ids = self._due_notes[:max_count]
        self._notes |= dict.fromkeys(unit_ids)
        return [self._possible_notes.pop(unit_id) for unit_id in unit_ids]

    def settle_unit(self, judgement: UnitJudgement) -> None:
        """Record that the judge answered about a unit, or failed to."""
        unit_id = judgement.unit.unit_id
        view = self._units.pop(unit_id, None)
        if view and judgement.awaits_note:
            self._possible_notes[unit_id] = NoteRequest(view=view, judgement=judgement)
        self._add_timeout(judgement.unit, judgement.outcome)

    def settle_note(self, answer: NoteAnswer) -> None:
        """Record that the judge wrote a note, or failed to."""
        unit = answer.judgement.unit
        self._notes.pop(unit.unit_id, None)
        self._add_timeout(unit, answer.outcome)

    def _add_timeout(self, unit: Unit, outcome: Outcome) -> None:
        """Note a unit whose answer or note timed out."""
        if outcome is Outcome.TIMED_OUT:
            self._timed_out.append(unit.unit_id)

    def drop_closed(self, unanswered: Collection[str]) -> None:
        """Drop the notes of units that closed; count those that were due, which are among the `unanswered` before."""
        is_open = self._fusion.is_open
        dropped = [name for name, note in self._possible_notes.items() if not is_open(note.view.unit)]
        for name in dropped:
            del self._possible_notes[name]
        self.notes_after_close += sum(name in unanswered for name in dropped)
