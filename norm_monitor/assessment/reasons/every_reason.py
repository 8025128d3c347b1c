"""All reasons for flags of turns and silences."""

from collections.abc import Callable, Iterator

from norm_monitor.assessment.finding import Reason
from norm_monitor.assessment.reasons.courtesy import (
    find_follow_up,
    find_manners,
    find_missing_amends,
    find_missing_greeting,
    find_reaction_to_news,
    find_ritual,
)
from norm_monitor.assessment.reasons.moment import Moment
from norm_monitor.assessment.reasons.names import find_name_use
from norm_monitor.assessment.reasons.reactions import find_apology, find_later_regret, find_protest, find_repair_request
from norm_monitor.assessment.reasons.turn_taking import (
    find_cut_in,
    find_ignored_stop,
    find_late_answer,
    find_lecture,
    find_left_pause,
    find_repetition,
)
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import Unit, UnitKind
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.scene import Scene

ReasonFunction = Callable[[Moment], Iterator[Reason]]

# Reasons of timing, which hold in any language.
_TIMING_REASONS: dict[UnitKind, tuple[ReasonFunction, ...]] = {
    UnitKind.ROBOT_TURN: (find_cut_in, find_lecture),
    UnitKind.SILENCE: (find_late_answer,),
    UnitKind.PERSON_TURN: (find_left_pause,),
}
# Reasons of the words of a robot turn.
_WORDING_REASONS: tuple[ReasonFunction, ...] = (
    *(find_protest, find_apology, find_later_regret, find_repair_request, find_repetition),
    *(
        find_ritual,
        find_missing_greeting,
        find_missing_amends,
        find_manners,
        find_follow_up,
        find_reaction_to_news,
        find_name_use,
    ),
)


class Reasons:
    """Find the reasons for flags in the scene of a window."""

    def __init__(self, scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> None:
        self._scene, self._table, self._matcher = scene, table, matcher
        self._ranks = {cue_id: rank for rank, cue_id in enumerate(table.cues)}

    def find(self, unit: Unit, *, without_timing: bool = False) -> tuple[Reason, ...]:
        """Find the reasons for a flag of a unit, for either polarity, in the order of the table."""
        turns = (turn for turn in self._scene.turns if turn.turn_id == unit.of_id)
        turn = next((turn for turn in turns if unit.onset_ns in {turn.start_ns, turn.end_ns}), None)
        if turn is None or (turn.is_robot and unit.kind is UnitKind.SILENCE):
            return ()
        functions = () if without_timing else _TIMING_REASONS[unit.kind]
        if unit.kind is UnitKind.ROBOT_TURN and not self._scene.other_language:
            functions += () if without_timing else (find_ignored_stop,)
            functions += () if turn.ongoing else _WORDING_REASONS
        moment = Moment(unit, turn, self._scene, self._table, self._matcher)
        reasons = (reason for function in functions for reason in function(moment))
        return tuple(sorted(reasons, key=lambda reason: self._ranks[reason.cue_id]))
