"""Whether the robot calls people by the names that they gave."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher

from norm_core.records.flag import Severity
from norm_monitor.assessment.finding import Reason, evidence_of, quote
from norm_monitor.assessment.reasons.moment import Moment
from norm_monitor.context.wording import tokens

# From this likeness, two spellings are one name.
_SAME_SPELLING_LIKENESS = 0.7
# From this likeness of their sound, a recognizer may confuse two names.
_SAME_SOUND_LIKENESS = 0.75
# Letters, and the sound class by which a recognizer may confuse them; applied in this order.
_SOUNDS = (
    (r"ph", "F"), (r"ck|[ckqg](?![eiy])|ch(?=[rl])", "K"), (r"tsch|tch|sch|sh|ch|[jg]|ti(?=on)|c(?=[eiy])|[sz]", "S"),
    (r"x", "KS"), (r"th|[dt]", "T"), (r"[pb]", "P"), (r"[vw](?=[aeiouy])|f", "F"), (r"[hw]", ""), (r"[eiy]+", "E"),
    (r"a+", "A"), (r"[ou]+", "O"),
)  # fmt: skip
_TITLE = r"(?i:(?:mr|mister|mrs|ms|miss|dr|doctor|prof|professor)\b\.? )?"
# A first name, a last name or both.
_NAME = r"([A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?)"
_INTRODUCTION = re.compile(
    rf"\b(?i:my name is|my name's|call me|the name is|the name's)\s+{_TITLE}{_NAME}"
    rf"|\b(?:I am|I'm|I’m|this is)\s+{_TITLE}{_NAME}(?=[,.!]|$| and\b)"
)
_INTRODUCTION_ZH = re.compile(r"我(?:叫|的名字是|姓名是)\s*([一-鿿]{1,4}?)(?=[，。！,.!]|$)")
_ADDRESS = (
    r"hello|hi|hey|dear|thanks|thank you|welcome(?: back)?|goodbye|bye|nice to meet you|okay|sorry|of course"
    r"|good (?:morning|afternoon|evening)"
)
_ADDRESSED = re.compile(
    rf"(?:^|[,.!?]\s*)(?i:{_ADDRESS}),?\s+{_TITLE}{_NAME}(?=[,.!?]|$)"
    rf"|,\s+{_TITLE}{_NAME}(?=[.!?]|$)"
)
_NOT_NAMES = {
    *("there", "sir", "madam", "everyone", "all", "again", "you", "please", "too", "then", "so", "now", "today", "the"),
    *("robot", "pepper", "nao", "okay", "yes", "no", "well", "sorry", "fine", "good", "happy", "sad", "tired", "here"),
    *("looking", "not", "just", "glad", "sure", "late", "lost", "back", "ready", "done", "welcome", "english"),
}  # fmt: skip


def find_name_use(moment: Moment) -> Iterator[Reason]:
    """Find a name that the robot uses: the one that a person gave, another one, or one never given."""
    robot, scene = moment.turn, moment.scene
    if not (used_name := _find_used_name(robot.text)):
        return
    own_names = {name for fact in scene.facts_of_addressee(robot) for name in find_given_names(fact.turn.text)}
    all_names = {name for fact in scene.facts_of_everyone(robot) for name in find_given_names(fact.turn.text)}
    is_rejected = _is_name_rejected(moment, own_names)
    if any(_is_same_name(word, name) for word, name in _pairs_of_words(used_name, all_names)):
        evidence = evidence_of(robot, "names given and used", 1, 1)
        note = f"The robot used the name the person had given, {used_name}: {quote(robot)}."
        yield moment.table.reason("recalls_name", [evidence], note)
    elif own_names and (
        is_rejected or not any(_is_alike_by_sound(word, name) for word, name in _pairs_of_words(used_name, own_names))
    ):
        yield moment.table.reason(
            "wrong_name",
            [evidence_of(robot, "names used that were given", 0, 1)],
            f"The person is {' or '.join(sorted(own_names))}, and the robot called them {used_name}.",
            Severity.MAJOR if is_rejected else Severity.MINOR,
        )
    elif not own_names and not is_rejected:
        note = f"The robot called the person by name, {used_name}: {quote(robot)}."
        yield moment.table.reason("calls_by_name", [evidence_of(robot, "names used", 1, 1)], note)


def _pairs_of_words(name: str, others: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pair each word of a name with each word of others, as people are called by the first or the last."""
    return ((word, other_word) for other in others for word in name.split() for other_word in other.split())


def _is_alike_by_sound(name: str, other: str) -> bool:
    """Whether a recognizer may take one name for the other, by their consonants or their whole sound."""
    sound, other_sound = _spell_by_sound(name), _spell_by_sound(other)
    if re.sub("[AEO]", "", sound) == re.sub("[AEO]", "", other_sound):
        return True
    return SequenceMatcher(None, sound, other_sound).ratio() >= _SAME_SOUND_LIKENESS


def _spell_by_sound(name: str) -> str:
    """Return a rough phonetic key: consonants without voicing, and front, open or back vowels."""
    plain = unicodedata.normalize("NFKD", name.lower()).encode("ascii", "ignore").decode() or name
    for letters, sound in _SOUNDS:
        plain = re.sub(letters, sound, plain)
    return re.sub(r"(.)\1+", r"\1", plain)


def _is_name_rejected(moment: Moment, own_names: set[str]) -> bool:
    """Whether the person corrects the name in their next turn."""
    answer = moment.scene.next_user_turn(moment.turn)
    if answer is None:
        return False
    own_words = {word.lower() for name in own_names for word in name.split()}
    says_own = bool(find_given_names(answer.text)) or not own_words.isdisjoint(tokens(answer.text))
    return (bool(own_names) and says_own) or bool(moment.matcher.match(answer.text, "misunderstood"))


def find_given_names(text: str) -> list[str]:
    """Find the names by which speakers introduce themselves in a text."""
    names = [first or second for first, second in _INTRODUCTION.findall(text)] + _INTRODUCTION_ZH.findall(text)
    return [name for name in names if name.lower() not in _NOT_NAMES]


def _find_used_name(text: str) -> str:
    """Return the name by which a text addresses somebody, or an empty string."""
    for match in _ADDRESSED.finditer(text):
        name = match.group(1) or match.group(2)
        if name and name.lower() not in _NOT_NAMES:
            return name
    return ""


def _is_same_name(name: str, other: str) -> bool:
    """Whether two names are the same, because a recognizer spells a name in several ways."""
    return SequenceMatcher(None, name.lower(), other.lower()).ratio() >= _SAME_SPELLING_LIKENESS
