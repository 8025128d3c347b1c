"""The questions of the judge about a marked part of a talk, in English and Chinese; their words are in judge.yaml."""

from bisect import bisect_right

from norm_core.engines.prompt import Part, Prompt, Question, Quoted, Text
from norm_core.engines.prompt_file import load_prompt_file
from norm_core.records.flag import Attribute

MARK = ">>"  # before each line of the talk that is judged
_FILE = load_prompt_file("judge", "norm_monitor.judge")
VERSION = _FILE.version
_TEXTS = _FILE.texts
# The nearness from which each word of `likeness` holds, beyond the first.
_BANDS = (0.5, 0.8)


def build_prefix(
    pictures: tuple[Part, ...],
    talk: Quoted | None,
    facts: tuple[str, ...] = (),
    locale: str = "en",
    *,
    faces_aside: bool = False,
) -> Prompt:
    """Return the shared part of all questions; `faces_aside` forbids inferring emotions from the pictures."""
    texts = _TEXTS[locale]
    parts: tuple[Part, ...] = (Text(text=texts["task"]),)
    if faces_aside:
        parts += (forbid_face_reading(locale),)
    parts += pictures
    if talk:
        parts += (talk,)
    if facts:
        parts += (Text(text="\n".join([texts["measured"], *(f"- {fact}" for fact in facts)])),)
    return Prompt(version=f"{VERSION}-{locale}{'-faces-aside' * faces_aside}", parts=parts)


def forbid_face_reading(locale: str = "en") -> Text:
    """Tell the model to infer no emotions from pictures, for contexts that forbid it."""
    return Text(text=_TEXTS[locale]["faces_aside"])


def word_fact(measure: str, value: float, unit: str = "", locale: str = "en") -> str:
    """Word a measured fact: a nearness by bands, and a measure that has no words in the file by its value."""
    texts = _TEXTS[locale]
    words = texts["facts"].get(measure)
    if not words:
        return f"{measure}: {value:.3g}{f' {unit}' if unit else ''}"
    return str(words).format(value=f"{value:.3g}", likeness=texts["likeness"][bisect_right(_BANDS, value)])


def ask_polarity(locale: str = "en") -> Question:
    """Ask for an error, a competence or ordinary conduct, in this order."""
    texts = _TEXTS[locale]
    return Question(parts=(Text(text=texts["polarity"]),), options=tuple(texts["polarities"]))


def ask_attributes(locale: str = "en") -> list[Question]:
    """Ask for yes or no on each attribute, in the order of Attribute."""
    template = _TEXTS[locale]["attribute"]
    yes_no = tuple(_TEXTS[locale]["yes_no"])
    return [Question(parts=(Text(text=template.format(meaning)),), options=yes_no) for meaning in list_meanings(locale)]


def list_meanings(locale: str = "en") -> tuple[str, ...]:
    """Return the meaning of each attribute, in the order of Attribute."""
    return tuple(_TEXTS[locale]["attributes"][attribute.value] for attribute in Attribute)


def ask_note(prefix: Prompt, polarity_index: int, locale: str = "en") -> Prompt:
    """Ask for a note on the first answer: one claim, its quote and the correction."""
    texts = _TEXTS[locale]
    text = texts["note"].format(texts["polarities"][polarity_index])
    return Prompt(version=prefix.version, parts=(*prefix.parts, Text(text=text)))
