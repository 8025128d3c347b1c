"""The turns around a turn of the robot, and their words as an exchange."""

from collections.abc import Iterable

from norm_core.records.record import record
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.exchange.exchange_record import Exchange


@record
class ExchangeContext:
    """A robot turn between the robot's previous and next turn; `then` is None while the robot still speaks."""

    before: tuple[Turn, ...]  # what people said since the robot's previous turn
    robot: Turn
    after: tuple[Turn, ...]
    then: Turn | None
    exchange: Exchange


def exchange_context(scene: Scene, robot: Turn) -> ExchangeContext:
    """Return the robot's turn with everything known that people said before and after it."""
    earlier, later = scene.robot_turn_before(robot), scene.next_robot_turn(robot)
    until_ns = later.start_ns if later else scene.window.end_ns
    before = tuple(u for u in scene.user_turns if (earlier.start_ns if earlier else 0) <= u.start_ns < robot.start_ns)
    after = tuple(u for u in scene.user_turns if robot.start_ns <= u.start_ns < until_ns)
    then = None if later is None or later.ongoing or not later.text.strip() else later
    return ExchangeContext(
        before=before,
        robot=robot,
        after=after,
        then=then,
        exchange=Exchange(
            before=_words(before),
            said=robot.text,
            after=_words(after),
            then=then.text if then else "",
            earlier=earlier.text if earlier else "",
            opening=earlier is None,
        ),
    )


def _words(turns: Iterable[Turn]) -> str:
    return " ".join(turn.text for turn in turns if turn.text.strip())
