"""Courtesy: greetings, thanks, farewells, kind words and tact."""

import re
from collections.abc import Iterator

from norm_core.runtime.time import NS_PER_S
from norm_monitor.assessment.finding import Reason, evidence_of, quote, quote_about
from norm_monitor.assessment.reasons.moment import Moment
from norm_monitor.context.meaning import Match, TextMatcher
from norm_monitor.context.wording import clauses, find_last_question, is_question, sentences, tokens, word_count

# A longer turn contains more than a greeting, which may be answered alone.
_MAX_GREETING_WORDS = 4
# A longer turn contains more than a farewell.
_MAX_LEAVE_WORDS = 10
_LEAVE = re.compile(
    r"((ok|okay|well|right|and|so|then|all right) )*"
    r"(good ?bye|bye( bye)?|see (you|ya)|good night|take care|ciao|cheerio"
    r"|have a (nice|good|great|lovely) (day|evening|one|trip))"
    r"( (now|then|for now|later|soon|again|tomorrow|around|everyone|everybody|robot|on \w+))*"
)
_LEAVE_ZH = re.compile(r"^(再见|拜拜|晚安|回头见|明天见)|(再见|拜拜|晚安)[。！!]?$")
# The rituals for which each ritual may be mistaken.
_RESEMBLES = {"greeting": ("farewell", "welcome"), "farewell": ("greeting",), "thanks": ("farewell", "greeting")}
# A greeting is returned within this time.
_MAX_GREETING_GAP_NS = 5 * NS_PER_S
# Within this time after a turn of the robot, "hey" is not a greeting.
_TALK_LASTS_NS = 60 * NS_PER_S
# A protest of this nearness needs no other sign.
_CLEAR_PROTEST_NEARNESS = 0.6
# By concept: the cue, the measure, and the meaning of the words.
_KINDNESS = {
    "disclosure": ("discloses", "nearness to disclosure", "telling something private about somebody"),
    "well_wish": ("wishes_well", "nearness to well wish", "wishing the person well"),
    "reassuring": ("reassures", "nearness to reassuring", "putting the person at ease"),
    "offering": ("offers_help", "nearness to offering", "an offer of help"),
    "praise": ("encourages", "nearness to praise", "praise or encouragement"),
}
# A question of this cosine to the turn just before follows up on it.
_MIN_SIMILARITY = 0.3


def find_ritual(moment: Moment) -> Iterator[Reason]:
    """Find greetings, farewells, thanks and accepted thanks of the robot."""
    robot, before = moment.turn, moment.person_before
    rituals = {
        "greets": (
            _match_ritual(moment.matcher, robot.text, "greeting"),
            "The robot said {}, which reads as a greeting.",
        ),
        "says_goodbye": (
            _match_ritual(moment.matcher, robot.text, "farewell"),
            "The robot said {}, which reads as a farewell.",
        ),
    }
    if before and moment.matcher.match(before.text, "thanks") and (acceptance := moment.match("welcome")):
        rituals["accepts_thanks"] = (acceptance, "The person thanked the robot, and it said {}.")
    else:
        rituals["thanks_user"] = (
            _match_ritual(moment.matcher, robot.text, "thanks"),
            "The robot thanked the person: {}.",
        )
    for cue_id, (match, note) in rituals.items():
        if match:
            evidence = evidence_of(robot, "nearness to the ritual", match.nearness, match.threshold)
            yield moment.table.reason(cue_id, [evidence], note.format(quote_about(robot, match.sentence)))


def find_missing_greeting(moment: Moment) -> Iterator[Reason]:
    """Find greetings of a person that the next turn of the robot does not return."""
    reply = moment.turn
    matcher = moment.matcher
    for user in moment.answered_turns:
        match = _match_ritual(matcher, user.text, "greeting")
        if (
            match is None
            or user.word_count > _MAX_GREETING_WORDS
            or reply.start_ns - user.end_ns > _MAX_GREETING_GAP_NS
        ):
            continue
        around = [
            robot
            for robot in moment.scene.robot_turns
            if -2 * _MAX_GREETING_GAP_NS <= robot.start_ns - user.end_ns <= _MAX_GREETING_GAP_NS
        ]
        spoke_recently = any(0 < user.start_ns - robot.end_ns < _TALK_LASTS_NS for robot in moment.scene.robot_turns)
        calls_out = spoke_recently and "hey" in tokens(user.text)[:2]
        if not calls_out and not any(_match_ritual(matcher, robot.text, "greeting") for robot in around):
            yield moment.table.reason(
                "no_greeting",
                [evidence_of(user, "nearness to a greeting", match.nearness, match.threshold)],
                f"The person said {quote(user)}, and the robot did not return the greeting.",
            )


def find_missing_amends(moment: Moment) -> Iterator[Reason]:
    """Find clear protests after which the robot goes on as before."""
    robot, before, matcher = moment.turn, moment.robot_before, moment.matcher
    makes_amends = any(moment.match(concept) for concept in ("amends", "sympathy", "adapting"))
    for user in moment.answered_turns if before and not makes_amends else ():
        protest = matcher.match(user.text, "protest")
        if not protest or protest.nearness < _CLEAR_PROTEST_NEARNESS or before is None:
            continue
        if matcher.similarity(robot.text, before.text) > matcher.similarity(robot.text, user.text):
            yield moment.table.reason(
                "no_apology",
                [
                    evidence_of(user, "nearness to a protest", protest.nearness, _CLEAR_PROTEST_NEARNESS),
                    evidence_of(robot, "words of the reply", robot.word_count),
                ],
                f"The person said {quote(user)}, which reads as an objection; the robot went on as before.",
            )


def find_manners(moment: Moment) -> Iterator[Reason]:
    """Find secrets that the robot reveals, and kind words."""
    robot = moment.turn
    for concept, (cue_id, measure, reads_as) in _KINDNESS.items():
        if match := moment.match(concept):
            yield moment.table.reason(
                cue_id,
                [evidence_of(robot, measure, match.nearness, match.threshold)],
                f"The robot said {quote_about(robot, match.sentence)}, which reads as {reads_as}.",
            )


def find_follow_up(moment: Moment) -> Iterator[Reason]:
    """Find questions of the robot about the words of a person just before."""
    robot = moment.turn
    before = next((turn for turn in reversed(moment.scene.turns) if turn.start_ns < robot.start_ns), None)
    if match := moment.match("asking_follow_up"):
        evidence = evidence_of(robot, "nearness to a follow-up question", match.nearness, match.threshold)
    elif before and not before.is_robot and not is_question(before.text) and find_last_question(robot.text):
        similarity = moment.matcher.similarity(before.text, robot.text)
        if similarity < _MIN_SIMILARITY:
            return
        evidence = evidence_of(before, "similarity of the question to it", similarity, _MIN_SIMILARITY)
    else:
        return
    note = f"The robot asked {quote(robot)}, which follows up on what the person said."
    yield moment.table.reason("follow_up_question", [evidence], note)


def find_reaction_to_news(moment: Moment) -> Iterator[Reason]:
    """Find cheer or sympathy after bad news, and joy shared in good news."""
    if not moment.answered_turns:
        return
    robot, user, matcher = moment.turn, moment.answered_turns[-1], moment.matcher
    bad = matcher.match(user.text, "bad_news") or matcher.match(user.text, "unhappy_answer")
    if bad and (match := moment.match("sympathy")):
        cue_id = "sympathises"
        note = f"The robot said {quote_about(robot, match.sentence)}, which shows sympathy with the person's trouble."
    elif bad and (match := moment.match("enthusiasm")):
        cue_id = "cheerful_after_bad_news"
        note = f"The person said {quote_about(user, bad.sentence)}, and the robot answered cheerfully."
    elif (
        not bad
        and matcher.match(user.text, "good_news")
        and (match := moment.match("congratulation") or moment.match("enthusiasm"))
    ):
        cue_id = "shares_joy"
        note = f"The robot said {quote_about(robot, match.sentence)}, which shares the joy in the person's news."
    else:
        return
    evidence = [
        evidence_of(user, "words of the person", user.word_count),
        evidence_of(robot, "nearness of the reply", match.nearness, match.threshold),
    ]
    yield moment.table.reason(cue_id, evidence, note)


def _match_ritual(matcher: TextMatcher, text: str, concept: str) -> Match | None:
    """Return the match of a ritual in a text, unless a similar ritual is nearer."""
    match = matcher.match(text, concept)
    is_nearer = any(matcher.match(match.sentence, other).nearness > match.nearness for other in _RESEMBLES[concept])
    is_leave = concept == "greeting" and _is_leave_taking(text)
    return match if match and not is_nearer and not is_leave else None


def _is_leave_taking(text: str) -> bool:
    """Whether a clause of a short text is a parting formula."""
    return word_count(text) <= _MAX_LEAVE_WORDS and any(
        _LEAVE.fullmatch(" ".join(tokens(part))) or _LEAVE_ZH.search(part)
        for sentence in sentences(text)
        for part in clauses(sentence) or [sentence]
    )
