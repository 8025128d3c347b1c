"""Greetings, thanks, farewells and manners."""

import re
from collections.abc import Iterator

from norm_core.records.flag import Evidence
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.assessment.finding import Findings, RequestWindowAt, evidence_of, quote, quote_about
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import Unit
from norm_monitor.context.meaning import Match, TextMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.context.wording import clauses, is_question, question_in, sentences, tokens, word_count

# A longer turn contains another request, which may be answered alone.
_LONGEST_RITUAL = 4
_LONGEST_LEAVE = 10
_LEAVE = re.compile(
    r"((ok|okay|well|right|and|so|then|all right) )*"
    r"(good ?bye|bye( bye)?|see (you|ya)|good night|take care|ciao|cheerio"
    r"|have a (nice|good|great|lovely) (day|evening|one|trip))"
    r"( (now|then|for now|later|soon|again|tomorrow|around|everyone|everybody|robot|on \w+))*"
)
_LEAVE_ZH = re.compile(r"^(再见|拜拜|晚安|回头见|明天见)|(再见|拜拜|晚安)[。！!]?$")
# The rituals that each may be mistaken for.
_RESEMBLES = {"greeting": ("farewell", "welcome"), "farewell": ("greeting",), "thanks": ("farewell", "greeting")}
# How long after the robot's last turn "hey" is no greeting.
_TALK_LASTS_NS = 60 * NS_PER_S


def greeting(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """The robot greets, or does not return a greeting."""
    yield from _said(scene, table, matcher, "greeting", "greets")
    within_ns = s_to_ns(table.cues["no_greeting"].value("within_s"))
    for user in scene.recent:
        match = None if user.is_robot else _ritual_in(matcher, user.text, "greeting")
        if match is None or user.word_count > _LONGEST_RITUAL or _calls_out(scene, user):
            continue
        around = [r for r in scene.robot_turns if -2 * within_ns <= r.start_ns - user.end_ns <= within_ns]
        if any(_ritual_in(matcher, robot.text, "greeting") for robot in around):
            continue
        due_ns = user.end_ns + within_ns
        reply = next((r for r in around if r.start_ns >= user.start_ns), None)
        if reply is None and scene.end_ns <= due_ns:
            yield RequestWindowAt(at_ns=due_ns + 1)
        elif reply is None or not reply.ongoing:
            answer = "did not return the greeting" if reply else "said nothing"
            yield table.finding(
                "no_greeting",
                Unit.of_turn(reply) if reply else Unit.of_silence(user, due_ns),
                anchor=user.turn_id,
                evidence=[evidence_of(user, "nearness to a greeting", match.nearness, match.threshold)],
                rationale=f"The person said {quote(user)}, and the robot {answer}.",
            )


def parting(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """The robot says goodbye."""
    yield from _said(scene, table, matcher, "farewell", "says_goodbye")


def thanks(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """The robot accepts thanks, or thanks the person."""
    for robot in scene.recent:
        if not robot.is_robot or robot.ongoing:
            continue
        before = scene.user_turn_before(robot)
        if before and matcher.match(before.text, "thanks") and (match := matcher.match(robot.text, "welcome")):
            yield _done(
                table,
                "accepts_thanks",
                robot,
                match,
                f"The person thanked the robot, and it said {quote_about(robot, match.sentence)}.",
            )
        elif gave := _ritual_in(matcher, robot.text, "thanks"):
            yield _done(
                table,
                "thanks_user",
                robot,
                gave,
                f"The robot thanked the person: {quote_about(robot, gave.sentence)}.",
            )


def complaint(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """After a clear protest the robot continues without a reply to it."""
    least = table.cues["no_apology"].value("certain")
    for user in scene.recent:
        robot = scene.next_robot_turn(user) if not user.is_robot else None
        before = scene.robot_turn_before(user)
        if robot is None or before is None or robot.ongoing:
            continue
        nearest = matcher.match(user.text, "protest")
        heeded = any(matcher.match(robot.text, name) for name in ("amends", "sympathy", "adapting"))
        alike = matcher.similarity(robot.text, before.text) > matcher.similarity(robot.text, user.text)
        if nearest and nearest.nearness >= least and alike and not heeded:
            yield table.finding(
                "no_apology",
                Unit.of_turn(robot),
                anchor=user.turn_id,
                evidence=[
                    evidence_of(user, "nearness to a protest", nearest.nearness, least),
                    evidence_of(robot, "words of the reply", robot.word_count),
                ],
                rationale=f"The person said {quote(user)}, which reads as an objection; the robot went on as before.",
            )


def _said(scene: Scene, table: ThresholdTable, matcher: TextMatcher, concept: str, cue_id: str) -> Iterator[Findings]:
    for robot in scene.recent:
        if robot.is_robot and not robot.ongoing and (match := _ritual_in(matcher, robot.text, concept)):
            note = f"The robot said {quote_about(robot, match.sentence)}, which reads as a {concept}."
            yield _done(table, cue_id, robot, match, note)


def _takes_leave(text: str) -> bool:
    """Whether one clause of a short text is a parting formula."""
    return word_count(text) <= _LONGEST_LEAVE and any(
        _LEAVE.fullmatch(" ".join(tokens(part))) or _LEAVE_ZH.search(part)
        for sentence in sentences(text)
        for part in clauses(sentence) or [sentence]
    )


def _calls_out(scene: Scene, user: Turn) -> bool:
    """Whether "hey" calls for attention in the middle of a talk."""
    lately = any(0 < user.start_ns - robot.end_ns < _TALK_LASTS_NS for robot in scene.robot_turns)
    return lately and "hey" in tokens(user.text)[:2]


def _ritual_in(matcher: TextMatcher, text: str, concept: str) -> Match | None:
    """Return the ritual in a text; of similar rituals, the nearest."""
    match = matcher.match(text, concept)
    nearer = any(matcher.match(match.sentence, other).nearness > match.nearness for other in _RESEMBLES[concept])
    leaves = concept == "greeting" and _takes_leave(text)
    return match if match and not nearer and not leaves else None


def _done(table: ThresholdTable, cue_id: str, robot: Turn, match: Match, rationale: str) -> Findings:
    return table.finding(
        cue_id,
        Unit.of_turn(robot),
        evidence=[evidence_of(robot, "nearness to the ritual", match.nearness, match.threshold)],
        rationale=rationale,
    )


_SAID = {
    "disclosure": ("discloses", "The robot said {words}, which reads as telling something private about somebody."),
    "well_wish": ("wishes_well", "The robot said {words}, which reads as wishing the person well."),
    "reassuring": ("reassures", "The robot said {words}, which reads as putting the person at ease."),
    "offering": ("offers_help", "The robot said {words}, which reads as an offer of help."),
    "praise": ("encourages", "The robot said {words}, which reads as praise or encouragement."),
}


def manners(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """The robot reveals a secret, or says something kind to a person."""
    for robot in scene.recent:
        if not robot.is_robot or robot.ongoing:
            continue
        for concept, (cue_id, note) in _SAID.items():
            if match := matcher.match(robot.text, concept):
                measure = f"nearness to {concept.replace('_', ' ')}"
                yield table.finding(
                    cue_id,
                    Unit.of_turn(robot),
                    evidence=[evidence_of(robot, measure, match.nearness, match.threshold)],
                    rationale=note.format(words=quote_about(robot, match.sentence)),
                )


def follow_up(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """The robot asks about what a person just told."""
    cue = table.cues["follow_up_question"]
    for robot in scene.recent:
        if not robot.is_robot or robot.ongoing:
            continue
        evidence: Evidence | None = None
        if match := matcher.match(robot.text, "asking_follow_up"):
            evidence = evidence_of(robot, "nearness to a follow-up question", match.nearness, match.threshold)
        elif statement := _statement_before(scene, robot):
            similarity = matcher.similarity(statement.text, robot.text)
            if similarity >= cue.value("similarity"):
                evidence = evidence_of(
                    statement, "similarity of the question to it", similarity, cue.value("similarity")
                )
        if evidence:
            yield table.finding(
                "follow_up_question",
                Unit.of_turn(robot),
                evidence=[evidence],
                rationale=f"The robot asked {quote(robot)}, which follows up on what the person said.",
            )


def _statement_before(scene: Scene, robot: Turn) -> Turn | None:
    """Return what a person told, without a question, just before the robot's question."""
    before = next((turn for turn in reversed(scene.turns) if turn.start_ns < robot.start_ns), None)
    is_told = before is not None and not before.is_robot and not is_question(before.text)
    return before if is_told and question_in(robot.text) else None


def tone(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """The robot reacts to bad news with cheer or sympathy, or shares the joy in good news, as the words show them."""
    for user in scene.recent:
        if user.is_robot or (robot := scene.next_robot_turn(user)) is None or robot.ongoing:
            continue
        following = scene.next_user_turn(user)
        if following and following.start_ns < robot.start_ns:
            continue
        bad = matcher.match(user.text, "bad_news") or matcher.match(user.text, "unhappy_answer")
        if bad and (match := matcher.match(robot.text, "sympathy")):
            cue_id = "sympathises"
            note = (
                f"The robot said {quote_about(robot, match.sentence)}, which shows sympathy with the person's trouble."
            )
        elif bad and (match := matcher.match(robot.text, "enthusiasm")):
            cue_id = "cheerful_after_bad_news"
            note = f"The person said {quote_about(user, bad.sentence)}, and the robot answered cheerfully."
        elif (
            not bad
            and matcher.match(user.text, "good_news")
            and (match := matcher.match(robot.text, "congratulation") or matcher.match(robot.text, "enthusiasm"))
        ):
            cue_id = "shares_joy"
            note = f"The robot said {quote_about(robot, match.sentence)}, which shares the joy in the person's news."
        else:
            continue
        yield table.finding(
            cue_id,
            Unit.of_turn(robot),
            anchor=user.turn_id,
            evidence=[
                evidence_of(user, "words of the person", user.word_count),
                evidence_of(robot, "nearness of the reply", match.nearness, match.threshold),
            ],
            rationale=note,
        )
