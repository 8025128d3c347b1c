"""Whether the robot calls a person by the name they gave."""

import re
import unicodedata
from collections.abc import Iterator
from difflib import SequenceMatcher

from norm_core.records.flag import Severity
from norm_monitor.assessment.finding import Reason, evidence_of, quote
from norm_monitor.assessment.reasons.moment import Moment
from norm_monitor.context.wording import tokens

# The least likeness of two spellings of one name, and of two names that a recognizer may confuse by their sound.
_SPELLING_THRESHOLD, _SOUND_THRESHOLD = 0.7, 0.75
# Letters and the sounds that a recognizer hardly tells apart, applied in this order.
_SOUNDS = (
    (r"ph", "F"), (r"ck|[ckqg](?![eiy])|ch(?=[rl])", "K"), (r"tsch|tch|sch|sh|ch|[jg]|ti(?=on)|c(?=[eiy])|[sz]", "S"),
    (r"x", "KS"), (r"th|[dt]", "T"), (r"[pb]", "P"), (r"[vw](?=[aeiouy])|f", "F"), (r"[hw]", ""), (r"[eiy]+", "E"),
    (r"a+", "A"), (r"[ou]+", "O"),
)  # fmt: skip
_NAME = r"([A-Z][\w'’-]+)"
_INTRODUCTION = re.compile(
    rf"\b(?i:my name is|my name's|call me|the name is|the name's)\s+{_NAME}"
    rf"|\b(?:I am|I'm|I’m|this is)\s+{_NAME}(?=[,.!]|$| and\b)"
)
_INTRODUCTION_ZH = re.compile(r"我(?:叫|的名字是|姓名是)\s*([一-鿿]{1,4}?)(?=[，。！,.!]|$)")
_ADDRESS = (
    r"hello|hi|hey|dear|thanks|thank you|welcome(?: back)?|goodbye|bye|nice to meet you|okay|sorry|of course"
    r"|good (?:morning|afternoon|evening)"
)
_ADDRESSED = re.compile(
    rf"(?:^|[,.!?]\s*)(?i:{_ADDRESS}),?\s+(?i:mr\.? |mrs\.? |ms\.? |miss )?{_NAME}(?=[,.!?]|$)"
    rf"|,\s+{_NAME}(?=[.!?]|$)"
)
_NO_NAMES = {
    *("there", "sir", "madam", "everyone", "all", "again", "you", "please", "too", "then", "so", "now", "today", "the"),
    *("robot", "pepper", "nao", "okay", "yes", "no", "well", "sorry", "fine", "good", "happy", "sad", "tired", "here"),
    *("looking", "not", "just", "glad", "sure", "late", "lost", "back", "ready", "done", "welcome", "english"),
}  # fmt: skip


def names_person(moment: Moment) -> Iterator[Reason]:
    """The robot uses the name that a person gave, uses another, or is the first to use one."""
    robot, scene = moment.turn, moment.scene
    if not (called := _name_in(robot.text)):
        return
    own_names = {name for fact in scene.facts_of_addressee(robot) for name in given_names(fact.turn.text)}
    all_names = {name for fact in scene.facts_of_everyone(robot) for name in given_names(fact.turn.text)}
    objects = _objects(moment, own_names)
    if any(_is_same_name(called, name) for name in all_names):
        evidence = evidence_of(robot, "names given and used", 1, 1)
        note = f"The robot used the name the person had given, {called}: {quote(robot)}."
        yield moment.reason("recalls_name", [evidence], note)
    elif own_names and (objects or not any(_sound_alike(called, name) for name in own_names)):
        yield moment.reason(
            "wrong_name",
            [evidence_of(robot, "names used that were given", 0, 1)],
            f"The person is {' or '.join(sorted(own_names))}, and the robot called them {called}.",
            Severity.MAJOR if objects else Severity.MINOR,
        )
    elif not own_names and not objects:
        note = f"The robot called the person by name, {called}: {quote(robot)}."
        yield moment.reason("calls_by_name", [evidence_of(robot, "names used", 1, 1)], note)


def _sound_alike(name: str, other: str) -> bool:
    """Whether a recognizer may take one name for the other, by their consonants or their whole sound."""
    mine, theirs = _sound(name), _sound(other)
    if re.sub("[AEO]", "", mine) == re.sub("[AEO]", "", theirs):
        return True
    return SequenceMatcher(None, mine, theirs).ratio() >= _SOUND_THRESHOLD


def _sound(name: str) -> str:
    """Return a rough phonetic key: voiced and voiceless consonants are one, vowels are front, open or back."""
    plain = unicodedata.normalize("NFKD", name.lower()).encode("ascii", "ignore").decode() or name
    for letters, sound in _SOUNDS:
        plain = re.sub(letters, sound, plain)
    return re.sub(r"(.)\1+", r"\1", plain)


def _objects(moment: Moment, own_names: set[str]) -> bool:
    """Whether the person corrects the name in their next turn."""
    answer = moment.scene.next_user_turn(moment.turn)
    if answer is None:
        return False
    says_own = bool(given_names(answer.text)) or any(name.lower() in tokens(answer.text) for name in own_names)
    return (bool(own_names) and says_own) or bool(moment.matcher.match(answer.text, "misunderstood"))


def given_names(text: str) -> list[str]:
    """Return the names by which a speaker introduces themselves in a text."""
    stated = [first or second for first, second in _INTRODUCTION.findall(text)] + _INTRODUCTION_ZH.findall(text)
    return [name for name in stated if name.lower() not in _NO_NAMES]


def _name_in(text: str) -> str:
    for match in _ADDRESSED.finditer(text):
        name = match.group(1) or match.group(2)
        if name and name.lower() not in _NO_NAMES:
            return name
    return ""


def _is_same_name(name: str, other: str) -> bool:
    """Whether two names are the same, because a recognizer spells a name in several ways."""
    return SequenceMatcher(None, name.lower(), other.lower()).ratio() >= _SPELLING_THRESHOLD
