"""Errors that a person's reaction or the robot's apology reveals: a protest, amends, or a request to repeat."""

from collections.abc import Iterator

from norm_core.runtime.time import NS_PER_S, ns_to_s
from norm_monitor.assessment.finding import Reason, evidence_of, quote, quote_about
from norm_monitor.assessment.reasons.moment import Moment
from norm_monitor.context.meaning import Match, TextMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn

# Kinds of error: each is a concept with its cue.
_PROTESTS = ("misunderstood", "protest_floor", "protest_manners", "protest_wish", "protest_feeling")
_AMENDS = (
    "admits_interrupting",
    "admits_not_listening",
    "admits_impoliteness",
    "admits_ignored_wish",
    "admits_ignored_feeling",
)
# A reaction belongs to what came 0.3 to 5 s before (mean 1.64 s, Mirnig); a longer one objects among other things.
_PROTEST_S, _PROTEST_WORDS = 5.0, 14
# Later an apology is for something else: it is due within one turn of the robot's (Giuliani 2015).
_AMENDS_S = 25.0
# Repair is short, and commonest after gaps of about 0.7 s (Dingemanse; Kendrick 2015).
_REPAIR_S, _REPAIR_WORDS = 3.0, 8
# Robot turns this near to each other are one action.
_ONE_GO_NS = 2 * NS_PER_S
_HARDLY_LESS = 0.1


def meets_protest(moment: Moment) -> Iterator[Reason]:
    """A person objects to the robot's turn."""
    robot, scene, matcher = moment.turn, moment.scene, moment.matcher
    for user in scene.user_turns:
        is_late = user.timed and ns_to_s(user.start_ns - robot.end_ns) > _PROTEST_S
        if user.start_ns <= robot.start_ns or is_late or user.word_count > _PROTEST_WORDS:
            continue
        match = matcher.match(user.text, "protest")
        wishes_stop = matcher.match(user.text, "stop").nearness > match.nearness  # which need not object to the words
        if match and not wishes_stop and _criticized_turn(scene, user) is robot:
            for cue_id in _kinds(matcher, match.sentence, _PROTESTS):
                yield moment.reason(
                    cue_id,
                    [evidence_of(user, "nearness to a protest", match.nearness, match.threshold)],
                    f"The person then said {quote(user)}, which reads as an objection to this turn of the robot's.",
                )


def apologizes(moment: Moment) -> Iterator[Reason]:
    """The robot admits an error."""
    robot = moment.turn
    if match := _apology(moment.scene, moment.matcher, robot):
        yield moment.reason(
            "admits_error",
            [evidence_of(robot, "nearness to an apology", match.nearness, match.threshold)],
            f"The robot said {quote_about(robot, match.sentence)}, which admits a mistake.",
        )


def is_regretted(moment: Moment) -> Iterator[Reason]:
    """The robot later apologizes for the turn."""
    done, scene, matcher = moment.turn, moment.scene, moment.matcher
    for robot in scene.robot_turns:
        after_s = ns_to_s(robot.start_ns - done.end_ns)
        user = scene.user_turn_before(robot)
        if robot.ongoing or not 0 < after_s <= _AMENDS_S or user is None or _criticized_turn(scene, user) is not done:
            continue
        if not (match := _apology(scene, matcher, robot)):
            continue
        kinds = _kinds(matcher, robot.text, _AMENDS)
        if not matcher.match(robot.text, kinds[0]):
            if matcher.match(done.text, "greeting"):
                continue  # the robot regrets something that it did not do
            kinds = ("apologised_for",)
        for cue_id in kinds:
            yield moment.reason(
                cue_id,
                [
                    evidence_of(done, "time until the apology", after_s, unit="s"),
                    evidence_of(robot, "nearness to an apology", match.nearness, match.threshold),
                ],
                f"The robot later said {quote_about(robot, match.sentence)}, which reads as regret for this turn.",
            )


def is_not_understood(moment: Moment) -> Iterator[Reason]:
    """A person asks the robot to say it again."""
    robot, scene = moment.turn, moment.scene
    for user in scene.user_turns:
        is_late = user.timed and ns_to_s(user.start_ns - robot.end_ns) > _REPAIR_S
        is_about = user.start_ns > robot.start_ns and scene.robot_turn_before(user) is robot
        if is_late or not is_about or user.word_count > _REPAIR_WORDS:
            continue
        if match := moment.matcher.match(user.text, "repair_request"):
            yield moment.reason(
                "user_repair",
                [evidence_of(user, "nearness to a request to repeat", match.nearness, match.threshold)],
                f"The person then asked {quote(user)}, so the robot was not understood.",
            )


def _apology(scene: Scene, matcher: TextMatcher, robot: Turn) -> Match | None:
    """Return how the robot apologizes, unless it only regrets what happened to somebody."""
    match = matcher.match(robot.text, "amends")
    user = scene.user_turn_before(robot)
    if not match or (user and matcher.match(user.text, "bad_news")):
        return None
    return match if match.nearness >= matcher.match(match.sentence, "sympathy").nearness else None


def _kinds(matcher: TextMatcher, text: str, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Return the nearest kind and those hardly less near: people often object to several things at once."""
    nearness = {name: matcher.match(text, name).nearness for name in kinds}
    first = max(nearness, key=lambda name: nearness[name])
    return first, *(name for name in kinds if name != first and nearness[name] >= nearness[first] - _HARDLY_LESS)


def _criticized_turn(scene: Scene, user: Turn) -> Turn | None:
    """Return the robot's turn that a reaction is about: the first of those said in one go."""
    turns = [robot for robot in scene.robot_turns if robot.start_ns < user.start_ns]
    if not turns:
        return None
    first = turns.pop()
    while turns and first.start_ns - turns[-1].end_ns < _ONE_GO_NS:
        earlier = turns.pop()
        if any(earlier.start_ns < other.start_ns < first.start_ns for other in scene.user_turns):
            break
        first = earlier
    return first
