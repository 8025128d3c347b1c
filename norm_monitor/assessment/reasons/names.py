"""Whether the robot calls a person by the name they gave."""

import re
import unicodedata
from collections.abc import Iterator
from difflib import SequenceMatcher

from norm_core.records.flag import Severity
from norm_monitor.assessment.finding import Findings, evidence_of, quote
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import Unit
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.scene import Scene
from norm_monitor.context.turns import Turn
from norm_monitor.context.wording import tokens

LIKE_SPELT = 0.7
# Letters and the sounds that a recognizer hardly tells apart, applied in this order.
_SOUNDS = (
    (r"ph", "F"), (r"ck|[ckqg](?![eiy])|ch(?=[rl])", "K"), (r"tsch|tch|sch|sh|ch|[jg]|ti(?=on)|c(?=[eiy])|[sz]", "S"),
    (r"x", "KS"), (r"th|[dt]", "T"), (r"[pb]", "P"), (r"[vw](?=[aeiouy])|f", "F"), (r"[hw]", ""), (r"[eiy]+", "E"),
    (r"a+", "A"), (r"[ou]+", "O"),
)  # fmt: skip
_NAME = r"([A-Z][\w'’-]+)"
_TOLD = re.compile(
    rf"\b(?i:my name is|my name's|call me|the name is|the name's)\s+{_NAME}"
    rf"|\b(?:I am|I'm|I’m|this is)\s+{_NAME}(?=[,.!]|$| and\b)"
)
_TOLD_ZH = re.compile(r"我(?:叫|的名字是|姓名是)\s*([一-鿿]{1,4}?)(?=[，。！,.!]|$)")
_ADDRESS = (
    r"hello|hi|hey|dear|thanks|thank you|welcome(?: back)?|goodbye|bye|nice to meet you|okay|sorry|of course"
    r"|good (?:morning|afternoon|evening)"
)
_CALLED = re.compile(
    rf"(?:^|[,.!?]\s*)(?i:{_ADDRESS}),?\s+(?i:mr\.? |mrs\.? |ms\.? |miss )?{_NAME}(?=[,.!?]|$)"
    rf"|,\s+{_NAME}(?=[.!?]|$)"
)
_NO_NAMES = {
    *("there", "sir", "madam", "everyone", "all", "again", "you", "please", "too", "then", "so", "now", "today", "the"),
    *("robot", "pepper", "nao", "okay", "yes", "no", "well", "sorry", "fine", "good", "happy", "sad", "tired", "here"),
    *("looking", "not", "just", "glad", "sure", "late", "lost", "back", "ready", "done", "welcome", "english"),
}  # fmt: skip


def names(scene: Scene, table: ThresholdTable, matcher: TextMatcher) -> Iterator[Findings]:
    """The robot uses the name that a person gave, uses another, or asks for it again."""
    for robot in scene.recent:
        if not robot.is_robot or not (called := _called(robot.text)):
            continue
        own_names = {name for fact in scene.facts_of_addressee(robot) for name in given_names(fact.turn.text)}
        all_names = {name for fact in scene.facts_of_everyone(robot) for name in given_names(fact.turn.text)}
        if not own_names and not any(_is_same_name(called, name) for name in all_names):
            answer = scene.next_user_turn(robot)
            if answer is None or not matcher.match(answer.text, "misunderstood"):
                yield table.finding(
                    "calls_by_name",
                    Unit.of_turn(robot),
                    evidence=[evidence_of(robot, "names used", 1, 1)],
                    rationale=f"The robot called the person by name, {called}: {quote(robot)}.",
                )
        elif any(_is_same_name(called, name) for name in all_names):
            yield table.finding(
                "recalls_name",
                Unit.of_turn(robot),
                evidence=[evidence_of(robot, "names given and used", 1, 1)],
                rationale=f"The robot used the name the person had given, {called}: {quote(robot)}.",
            )
        elif (objects := _objects(scene, matcher, robot, own_names)) or not any(
            sounds_alike(called, name, table.cues["wrong_name"].value("sound")) for name in own_names
        ):
            yield table.finding(
                "wrong_name",
                Unit.of_turn(robot),
                severity=Severity.MAJOR if objects else Severity.MINOR,
                evidence=[evidence_of(robot, "names used that were given", 0, 1)],
                rationale=f"The person is {' or '.join(sorted(own_names))}, and the robot called them {called}.",
            )


def sounds_alike(name: str, other: str, least: float) -> bool:
    """Whether a recognizer may take one name for the other, by their consonants or their whole sound."""
    mine, theirs = _sound(name), _sound(other)
    if re.sub("[AEO]", "", mine) == re.sub("[AEO]", "", theirs):
        return True
    return SequenceMatcher(None, mine, theirs).ratio() >= least


def _sound(name: str) -> str:
    """Return a rough phonetic key: voiced and voiceless consonants are one, vowels are front, open or back."""
    plain = unicodedata.normalize("NFKD", name.lower()).encode("ascii", "ignore").decode() or name
    for letters, sound in _SOUNDS:
        plain = re.sub(letters, sound, plain)
    return re.sub(r"(.)\1+", r"\1", plain)


def _objects(scene: Scene, matcher: TextMatcher, robot: Turn, own_names: set[str]) -> bool:
    """Whether the person corrects the name in their next turn."""
    answer = scene.next_user_turn(robot)
    if answer is None:
        return False
    says_own = bool(given_names(answer.text)) or any(name.lower() in tokens(answer.text) for name in own_names)
    return says_own or bool(matcher.match(answer.text, "misunderstood"))


def given_names(text: str) -> list[str]:
    """Return the names by which a speaker introduces themselves in a text."""
    stated = [first or second for first, second in _TOLD.findall(text)] + _TOLD_ZH.findall(text)
    return [name for name in stated if name.lower() not in _NO_NAMES]


def _called(text: str) -> str:
    for match in _CALLED.finditer(text):
        name = match.group(1) or match.group(2)
        if name and name.lower() not in _NO_NAMES:
            return name
    return ""


def _is_same_name(name: str, other: str) -> bool:
    """Whether two names are the same, because a recognizer spells a name in several ways."""
    return SequenceMatcher(None, name.lower(), other.lower()).ratio() >= LIKE_SPELT
