"""All reasons for flags of turns and silences."""

from collections.abc import Callable, Iterator

from norm_monitor.assessment.finding import Reason
from norm_monitor.assessment.reasons.courtesy import (
    follows_up,
    makes_no_amends,
    minds_news,
    observes_ritual,
    returns_no_greeting,
    shows_manners,
)
from norm_monitor.assessment.reasons.moment import Moment
from norm_monitor.assessment.reasons.names import names_person
from norm_monitor.assessment.reasons.reactions import apologizes, is_not_understood, is_regretted, meets_protest
from norm_monitor.assessment.reasons.turn_taking import (
    answers_late,
    cuts_in,
    ignores_stop,
    lectures,
    repeats,
    waits_for_end,
)
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import Unit, UnitKind
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.scene import Scene

ReasonFunction = Callable[[Moment], Iterator[Reason]]

# Reasons by timing, in any language.
_OF_TIMING: dict[UnitKind, tuple[ReasonFunction, ...]] = {
    UnitKind.ROBOT_TURN: (cuts_in, lectures),
    UnitKind.SILENCE: (answers_late,),
    UnitKind.PERSON_TURN: (waits_for_end,),
}
# Reasons by the words of the robot's turn.
_OF_WORDS: tuple[ReasonFunction, ...] = (
    *(meets_protest, apologizes, is_regretted, is_not_understood, repeats),
    *(observes_ritual, returns_no_greeting, makes_no_amends, shows_manners, follows_up, minds_news, names_person),
)


class Reasons:
    """Find the reasons for flags in the scene of a window."""

    def __init__(self, scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> None:
        self._scene, self._table, self._matcher = scene, table, matcher
        self._ranks = {cue_id: rank for rank, cue_id in enumerate(table.cues)}

    def of(self, unit: Unit, *, without_timing: bool = False) -> tuple[Reason, ...]:
        """Return the reasons for a flag of a unit, for either polarity, in the order of the table."""
        turns = (turn for turn in self._scene.turns if turn.turn_id == unit.of_id)
        turn = next((turn for turn in turns if unit.onset_ns in {turn.start_ns, turn.end_ns}), None)
        if turn is None:
            return ()
        functions = () if without_timing else _OF_TIMING[unit.kind]
        if unit.kind is UnitKind.ROBOT_TURN and not self._scene.other_language:
            functions += () if without_timing else (ignores_stop,)
            functions += () if turn.ongoing else _OF_WORDS
        moment = Moment(unit, turn, self._scene, self._table, self._matcher)
        reasons = (reason for function in functions for reason in function(moment))
        return tuple(sorted(reasons, key=lambda reason: self._ranks[reason.cue_id]))
