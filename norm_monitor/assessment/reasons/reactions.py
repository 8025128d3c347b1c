"""Errors that a person's reaction or the robot's apology reveals: a protest, amends, or a request to repeat."""

from collections.abc import Iterator

from norm_core.records.flag import Attribute
from norm_core.runtime.time import NS_PER_S, ns_to_s, s_to_ns
from norm_monitor.assessment.finding import Findings, evidence_of, quote, quote_about
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import Unit
from norm_monitor.context.meaning import Match, TextMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn

# Kinds of error: each is a concept with its cue.
PROTESTS = ("misunderstood", "protest_floor", "protest_manners", "protest_wish", "protest_feeling")
AMENDS = (
    "admits_interrupting",
    "admits_not_listening",
    "admits_impoliteness",
    "admits_ignored_wish",
    "admits_ignored_feeling",
)
# These show that the robot regretted a turn; any other cue shows better why.
REGRETS = (*AMENDS, "apologised_for")
# Robot turns this near to each other are one action.
_ONE_GO_NS = 2 * NS_PER_S
_HARDLY_LESS = 0.1


def protest(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """A person objects to the robot's last action; the confidence rises once the robot apologizes."""
    for user in scene.recent:
        done = _criticized_turn(scene, user) if not user.is_robot else None
        match = matcher.match(user.text, "protest")
        if done is None or not match or matcher.match(user.text, "stop").nearness > match.nearness:
            continue  # a wish to stop, which need not object to what was said
        kinds = _kinds(matcher, match.sentence, PROTESTS)
        cue_id = kinds[0]
        cue = table.cues[cue_id]
        late = user.timed and user.start_ns - done.end_ns > s_to_ns(cue.value("within_s"))
        if late or user.word_count > cue.value("words"):
            continue
        yield table.finding(
            cue_id,
            Unit.of_turn(done),
            anchor=user.turn_id,
            attributes=_attributes(table, kinds),
            evidence=[evidence_of(user, "nearness to a protest", match.nearness, match.threshold)],
            rationale=f"The person then said {quote(user)}, which reads as an objection to this turn of the robot's.",
        )


def amends(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """The robot apologizes: a competence, and evidence that its action before was an error."""
    for robot in scene.recent:
        if not robot.is_robot or robot.ongoing or not (match := _amends_kind(scene, matcher, robot)):
            continue
        yield table.finding(
            "admits_error",
            Unit.of_turn(robot),
            evidence=[evidence_of(robot, "nearness to an apology", match.nearness, match.threshold)],
            rationale=f"The robot said {quote_about(robot, match.sentence)}, which admits a mistake.",
        )
        user = scene.user_turn_before(robot)
        done = _criticized_turn(scene, user) if user else None
        kinds = _kinds(matcher, robot.text, AMENDS)
        named = bool(matcher.match(robot.text, kinds[0]))
        cue_id = kinds[0] if named else "apologised_for"
        within_ns = s_to_ns(table.cues[cue_id].value("within_s"))
        if done is None or not 0 < robot.start_ns - done.end_ns <= within_ns:
            continue
        if not named and matcher.match(done.text, "greeting"):
            continue  # the robot regrets something that it did not do
        yield table.finding(
            cue_id,
            Unit.of_turn(done),
            anchor=robot.turn_id,
            attributes=_attributes(table, kinds) if named else (),
            evidence=[
                evidence_of(done, "time until the apology", ns_to_s(robot.start_ns - done.end_ns), unit="s"),
                evidence_of(robot, "nearness to an apology", match.nearness, match.threshold),
            ],
            rationale=f"The robot later said {quote_about(robot, match.sentence)}, "
            "which reads as regret for this turn.",
        )


def _amends_kind(scene: Scene, matcher: TextMatcher, robot: Turn) -> Match | None:
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


def _attributes(table: ThresholdTable, kinds: tuple[str, ...]) -> tuple[Attribute, ...]:
    return tuple(dict.fromkeys(attribute for kind in kinds for attribute in table.cues[kind].attributes))


def _criticized_turn(scene: Scene, user: Turn) -> Turn | None:
    """Return the robot's turn that a reaction is about: the first of those said in one go."""
    turns = [robot for robot in scene.robot_turns if robot.start_ns < user.start_ns]
    if not turns:
        return None
    first = turns.pop()
    while turns and first.start_ns - turns[-1].end_ns < _ONE_GO_NS:
        earlier = turns.pop()
        if any(earlier.start_ns < u.start_ns < first.start_ns for u in scene.user_turns):
            break
        first = earlier
    return first


def user_repair(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """A person did not understand what the robot said."""
    for turn in scene.recent:
        robot = scene.robot_turn_before(turn)
        if turn.is_robot or robot is None or not turn.text:
            continue
        gap_s = ns_to_s(turn.start_ns - robot.end_ns)
        cue = table.cues["user_repair"]
        if gap_s > cue.value("within_s") and turn.timed:
            continue
        if turn.word_count <= cue.value("words") and (match := matcher.match(turn.text, "repair_request")):
            yield table.finding(
                "user_repair",
                Unit.of_turn(robot),
                anchor=turn.turn_id,
                evidence=[evidence_of(turn, "nearness to a request to repeat", match.nearness, match.threshold)],
                rationale=f"The person then asked {quote(turn)}, so the robot was not understood.",
            )
