"""Errors that a person's reaction or the robot's apology reveals: a protest, amends, or a request to repeat."""

from collections.abc import Iterator

from norm_core.runtime.time import NS_PER_S, ns_to_s
from norm_monitor.assessment.finding import Reason, evidence_of, quote, quote_about
from norm_monitor.assessment.reasons.moment import Moment
from norm_monitor.context.meaning import Match, TextMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn

# Kinds of protest, each a concept with its cue.
_PROTESTS = ("misunderstood", "protest_floor", "protest_manners", "protest_wish", "protest_feeling")
# Kinds of apology, each a concept with its cue.
_AMENDS = (
    "admits_interrupting",
    "admits_not_listening",
    "admits_impoliteness",
    "admits_ignored_wish",
    "admits_ignored_feeling",
)
# The cues that rest on later words, which may be about another turn.
LATER_WORDS = frozenset({*_PROTESTS, *_AMENDS, "user_repair"})
# A reaction is about a turn that ended 0.3 to 5 s before (mean 1.64 s, Mirnig).
_MAX_PROTEST_GAP_S = 5.0
# A longer reaction says more than an objection.
_MAX_PROTEST_WORDS = 14
# A later apology is for something else: it is due within one turn of the robot (Giuliani 2015).
_MAX_AMENDS_GAP_S = 25.0
# A request for repair mostly follows after about 0.7 s (Kendrick 2015).
_MAX_REPAIR_GAP_S = 3.0
# A request for repair is short (Dingemanse).
_MAX_REPAIR_WORDS = 8
# Robot turns with a shorter gap are one action.
_MAX_ACTION_GAP_NS = 2 * NS_PER_S
# People often object to several things at once: other kinds count up to this much below the nearest.
_MAX_NEARNESS_LOSS = 0.1


def find_protest(moment: Moment) -> Iterator[Reason]:
    """Find objections of a person to the turn."""
    robot, scene, matcher = moment.turn, moment.scene, moment.matcher
    for user in scene.user_turns:
        is_late = user.timed and ns_to_s(user.start_ns - robot.end_ns) > _MAX_PROTEST_GAP_S
        if user.start_ns <= robot.start_ns or is_late or user.word_count > _MAX_PROTEST_WORDS:
            continue
        match = matcher.match(user.text, "protest")
        is_stop = matcher.match(user.text, "stop").nearness > match.nearness  # which need not be an objection
        if match and not is_stop and _find_criticized_turn(scene, user) is robot:
            for cue_id in _choose_kinds(matcher, match.sentence, _PROTESTS):
                yield moment.table.reason(
                    cue_id,
                    [evidence_of(user, "nearness to a protest", match.nearness, match.threshold)],
                    f"The person then said {quote(user)}, which reads as an objection to this turn of the robot's.",
                )


def find_apology(moment: Moment) -> Iterator[Reason]:
    """Find an apology of the robot in the turn."""
    robot = moment.turn
    if match := _match_apology(moment.scene, moment.matcher, robot):
        yield moment.table.reason(
            "admits_error",
            [evidence_of(robot, "nearness to an apology", match.nearness, match.threshold)],
            f"The robot said {quote_about(robot, match.sentence)}, which admits a mistake.",
        )


def find_later_regret(moment: Moment) -> Iterator[Reason]:
    """Find later apologies of the robot for the turn."""
    regretted, scene, matcher = moment.turn, moment.scene, moment.matcher
    for robot in scene.robot_turns:
        after_s = ns_to_s(robot.start_ns - regretted.end_ns)
        user = scene.user_turn_before(robot)
        if (
            robot.ongoing
            or not 0 < after_s <= _MAX_AMENDS_GAP_S
            or user is None
            or _find_criticized_turn(scene, user) is not regretted
        ):
            continue
        if not (match := _match_apology(scene, matcher, robot)):
            continue
        kinds = _choose_kinds(matcher, robot.text, _AMENDS)
        if not matcher.match(robot.text, kinds[0]):
            if matcher.match(regretted.text, "greeting"):
                continue  # the robot regrets something that it did not do
            kinds = ("apologised_for",)
        for cue_id in kinds:
            yield moment.table.reason(
                cue_id,
                [
                    evidence_of(regretted, "time until the apology", after_s, unit="s"),
                    evidence_of(robot, "nearness to an apology", match.nearness, match.threshold),
                ],
                f"The robot later said {quote_about(robot, match.sentence)}, which reads as regret for this turn.",
            )


def find_repair_request(moment: Moment) -> Iterator[Reason]:
    """Find requests of a person to say the turn again."""
    robot, scene = moment.turn, moment.scene
    for user in scene.user_turns:
        is_late = user.timed and ns_to_s(user.start_ns - robot.end_ns) > _MAX_REPAIR_GAP_S
        is_about = user.start_ns > robot.start_ns and scene.robot_turn_before(user) is robot
        if is_late or not is_about or user.word_count > _MAX_REPAIR_WORDS:
            continue
        if match := moment.matcher.match(user.text, "repair_request"):
            yield moment.table.reason(
                "user_repair",
                [evidence_of(user, "nearness to a request to repeat", match.nearness, match.threshold)],
                f"The person then asked {quote(user)}, so the robot was not understood.",
            )


def _match_apology(scene: Scene, matcher: TextMatcher, robot: Turn) -> Match | None:
    """Return the apology in a turn, unless it only regrets what happened to somebody."""
    match = matcher.match(robot.text, "amends")
    user = scene.user_turn_before(robot)
    if not match or (user and matcher.match(user.text, "bad_news")):
        return None
    return match if match.nearness >= matcher.match(match.sentence, "sympathy").nearness else None


def _choose_kinds(matcher: TextMatcher, text: str, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Return the nearest kind, and those that are hardly less near."""
    nearness = {name: matcher.match(text, name).nearness for name in kinds}
    first = max(nearness, key=lambda name: nearness[name])
    return first, *(name for name in kinds if name != first and nearness[name] >= nearness[first] - _MAX_NEARNESS_LOSS)


def _find_criticized_turn(scene: Scene, user: Turn) -> Turn | None:
    """Return the robot turn that a reaction is about: the first of those without a longer gap."""
    turns = [robot for robot in scene.robot_turns if robot.start_ns < user.start_ns]
    if not turns:
        return None
    first = turns.pop()
    while turns and first.start_ns - turns[-1].end_ns < _MAX_ACTION_GAP_NS:
        earlier = turns.pop()
        if any(earlier.start_ns < other.start_ns < first.start_ns for other in scene.user_turns):
            break
        first = earlier
    return first
