"""A turn in its scene: the input of the functions that word a flag."""

from functools import cached_property

from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import Unit
from norm_monitor.context.meaning import Match, TextMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn


class Moment:
    """A turn with the talk around it."""

    def __init__(self, unit: Unit, turn: Turn, scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> None:
        """Hold the turn that is the unit, or that the silence follows."""
        self.unit, self.turn, self.scene, self.table, self.matcher = unit, turn, scene, table, matcher

    @cached_property
    def person_before(self) -> Turn | None:
        """The last turn of a person before this one."""
        return self.scene.user_turn_before(self.turn)

    @cached_property
    def robot_before(self) -> Turn | None:
        """The last turn of the robot before this one."""
        return self.scene.robot_turn_before(self.turn)

    @cached_property
    def answered_turns(self) -> tuple[Turn, ...]:
        """The turns of people since the last turn of the robot."""
        since_ns = self.robot_before.start_ns if self.robot_before else self.scene.turns[0].start_ns - 1
        return tuple(turn for turn in self.scene.user_turns if since_ns < turn.start_ns < self.turn.start_ns)

    def match(self, concept: str) -> Match:
        """Match the words of the turn with a concept."""
        return self.matcher.match(self.turn.text, concept)
