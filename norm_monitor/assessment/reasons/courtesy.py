"""Courtesy: greetings, thanks, farewells, kind words and tact."""

import re
from collections.abc import Iterator

from norm_core.runtime.time import NS_PER_S
from norm_monitor.assessment.finding import Reason, evidence_of, quote, quote_about
from norm_monitor.assessment.reasons.moment import Moment
from norm_monitor.context.meaning import Match, TextMatcher
from norm_monitor.context.wording import clauses, is_question, question_in, sentences, tokens, word_count

# A longer turn contains another request, which may be answered alone.
_GREETING_WORDS = 4
_LEAVE_WORDS = 10
_LEAVE = re.compile(
    r"((ok|okay|well|right|and|so|then|all right) )*"
    r"(good ?bye|bye( bye)?|see (you|ya)|good night|take care|ciao|cheerio"
    r"|have a (nice|good|great|lovely) (day|evening|one|trip))"
    r"( (now|then|for now|later|soon|again|tomorrow|around|everyone|everybody|robot|on \w+))*"
)
_LEAVE_ZH = re.compile(r"^(再见|拜拜|晚安|回头见|明天见)|(再见|拜拜|晚安)[。！!]?$")
# The rituals that each may be mistaken for.
_RESEMBLES = {"greeting": ("farewell", "welcome"), "farewell": ("greeting",), "thanks": ("farewell", "greeting")}
_GREETING_NS = 5 * NS_PER_S
# How long after the robot's last turn "hey" is no greeting.
_TALK_LASTS_NS = 60 * NS_PER_S
# From which nearness on a protest needs nothing to bear it out.
_CLEAR_PROTEST = 0.6
# By concept: the cue, what is measured, and what the words read as.
_KINDNESS = {
    "disclosure": ("discloses", "nearness to disclosure", "telling something private about somebody"),
    "well_wish": ("wishes_well", "nearness to well wish", "wishing the person well"),
    "reassuring": ("reassures", "nearness to reassuring", "putting the person at ease"),
    "offering": ("offers_help", "nearness to offering", "an offer of help"),
    "praise": ("encourages", "nearness to praise", "praise or encouragement"),
}
# The least cosine of a question to what was told just before.
_MIN_SIMILARITY = 0.3


def observes_ritual(moment: Moment) -> Iterator[Reason]:
    """The robot greets, says goodbye, accepts thanks or thanks the person."""
    robot, before = moment.turn, moment.person_before
    rituals = {
        "greets": (_ritual_in(moment.matcher, robot.text, "greeting"), "The robot said {}, which reads as a greeting."),
        "says_goodbye": (
            _ritual_in(moment.matcher, robot.text, "farewell"),
            "The robot said {}, which reads as a farewell.",
        ),
    }
    if before and moment.matcher.match(before.text, "thanks") and (acceptance := moment.match("welcome")):
        rituals["accepts_thanks"] = (acceptance, "The person thanked the robot, and it said {}.")
    else:
        rituals["thanks_user"] = (
            _ritual_in(moment.matcher, robot.text, "thanks"),
            "The robot thanked the person: {}.",
        )
    for cue_id, (match, note) in rituals.items():
        if match:
            evidence = evidence_of(robot, "nearness to the ritual", match.nearness, match.threshold)
            yield moment.reason(cue_id, [evidence], note.format(quote_about(robot, match.sentence)))


def returns_no_greeting(moment: Moment) -> Iterator[Reason]:
    """A person greets, and the robot's next turn does not greet back."""
    reply, matcher = moment.turn, moment.matcher
    for user in moment.answered:
        match = _ritual_in(matcher, user.text, "greeting")
        if match is None or user.word_count > _GREETING_WORDS or reply.start_ns - user.end_ns > _GREETING_NS:
            continue
        around = [
            robot
            for robot in moment.scene.robot_turns
            if -2 * _GREETING_NS <= robot.start_ns - user.end_ns <= _GREETING_NS
        ]
        spoke_recently = any(0 < user.start_ns - robot.end_ns < _TALK_LASTS_NS for robot in moment.scene.robot_turns)
        calls_out = spoke_recently and "hey" in tokens(user.text)[:2]
        if not calls_out and not any(_ritual_in(matcher, robot.text, "greeting") for robot in around):
            yield moment.reason(
                "no_greeting",
                [evidence_of(user, "nearness to a greeting", match.nearness, match.threshold)],
                f"The person said {quote(user)}, and the robot did not return the greeting.",
            )


def makes_no_amends(moment: Moment) -> Iterator[Reason]:
    """After a clear protest the robot goes on as before."""
    robot, before, matcher = moment.turn, moment.robot_before, moment.matcher
    makes_amends = any(moment.match(concept) for concept in ("amends", "sympathy", "adapting"))
    for user in moment.answered if before and not makes_amends else ():
        protest = matcher.match(user.text, "protest")
        if not protest or protest.nearness < _CLEAR_PROTEST or before is None:
            continue
        if matcher.similarity(robot.text, before.text) > matcher.similarity(robot.text, user.text):
            yield moment.reason(
                "no_apology",
                [
                    evidence_of(user, "nearness to a protest", protest.nearness, _CLEAR_PROTEST),
                    evidence_of(robot, "words of the reply", robot.word_count),
                ],
                f"The person said {quote(user)}, which reads as an objection; the robot went on as before.",
            )


def shows_manners(moment: Moment) -> Iterator[Reason]:
    """The robot reveals a secret, or says something kind to a person."""
    robot = moment.turn
    for concept, (cue_id, measure, reads_as) in _KINDNESS.items():
        if match := moment.match(concept):
            yield moment.reason(
                cue_id,
                [evidence_of(robot, measure, match.nearness, match.threshold)],
                f"The robot said {quote_about(robot, match.sentence)}, which reads as {reads_as}.",
            )


def follows_up(moment: Moment) -> Iterator[Reason]:
    """The robot asks about what a person just told."""
    robot = moment.turn
    before = next((turn for turn in reversed(moment.scene.turns) if turn.start_ns < robot.start_ns), None)
    if match := moment.match("asking_follow_up"):
        evidence = evidence_of(robot, "nearness to a follow-up question", match.nearness, match.threshold)
    elif before and not before.is_robot and not is_question(before.text) and question_in(robot.text):
        similarity = moment.matcher.similarity(before.text, robot.text)
        if similarity < _MIN_SIMILARITY:
            return
        evidence = evidence_of(before, "similarity of the question to it", similarity, _MIN_SIMILARITY)
    else:
        return
    note = f"The robot asked {quote(robot)}, which follows up on what the person said."
    yield moment.reason("follow_up_question", [evidence], note)


def minds_news(moment: Moment) -> Iterator[Reason]:
    """The robot reacts to bad news with cheer or sympathy, or shares the joy in good news, as the words show them."""
    if not moment.answered:
        return
    robot, user, matcher = moment.turn, moment.answered[-1], moment.matcher
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
    yield moment.reason(cue_id, evidence, note)


def _ritual_in(matcher: TextMatcher, text: str, concept: str) -> Match | None:
    """Return the ritual in a text; of similar rituals, the nearest."""
    match = matcher.match(text, concept)
    nearer = any(matcher.match(match.sentence, other).nearness > match.nearness for other in _RESEMBLES[concept])
    leaves = concept == "greeting" and _takes_leave(text)
    return match if match and not nearer and not leaves else None


def _takes_leave(text: str) -> bool:
    """Whether one clause of a short text is a parting formula."""
    return word_count(text) <= _LEAVE_WORDS and any(
        _LEAVE.fullmatch(" ".join(tokens(part))) or _LEAVE_ZH.search(part)
        for sentence in sentences(text)
        for part in clauses(sentence) or [sentence]
    )
