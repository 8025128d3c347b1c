"""The judge's questions about a marked part of a talk, in the terms of HSRI, in English and Chinese: judge.yaml."""

from bisect import bisect_right

from norm_core.engines.prompt import Part, Prompt, Question, Quoted, Text
from norm_core.engines.prompt_file import load_prompt_file
from norm_core.records.flag import Attribute

MARK = ">>"  # before each line of the talk that is judged
_FILE = load_prompt_file("judge", "norm_monitor.judge")
VERSION, _TEXTS = _FILE.version, _FILE.texts
# From which nearness on the words of `likeness` hold, beyond the first.
_BANDS = (0.5, 0.8)


def prefix(
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
        parts += (faces_aside_text(locale),)
    parts += pictures
    if talk:
        parts += (talk,)
    if facts:
        parts += (Text(text="\n".join([texts["measured"], *(f"- {fact}" for fact in facts)])),)
    return Prompt(version=f"{VERSION}-{locale}{'-faces-aside' * faces_aside}", parts=parts)


def faces_aside_text(locale: str = "en") -> Text:
    """For contexts that forbid inferring emotions from images; the question about emotions then gets words only."""
    return Text(text=_TEXTS[locale]["faces_aside"])


def fact(measure: str, value: float, unit: str = "", locale: str = "en") -> str:
    """Word a measured fact: a nearness by bands, and a measure without words in the file by its value."""
    texts = _TEXTS[locale]
    words = texts["facts"].get(measure)
    if not words:
        return f"{measure}: {value:.3g}{f' {unit}' if unit else ''}"
    return str(words).format(value=f"{value:.3g}", likeness=texts["likeness"][bisect_right(_BANDS, value)])


def detection(locale: str = "en") -> Question:
    """Ask for an error, a competence or ordinary conduct, in this order."""
    texts = _TEXTS[locale]
    return Question(parts=(Text(text=texts["polarity"]),), options=tuple(texts["polarities"]))


def attributes(locale: str = "en") -> list[Question]:
    """Ask for yes or no on each attribute, in the order of Attribute."""
    about, yes_no = _TEXTS[locale]["attribute"], tuple(_TEXTS[locale]["yes_no"])
    return [Question(parts=(Text(text=about.format(meant)),), options=yes_no) for meant in meanings(locale)]


def meanings(locale: str = "en") -> tuple[str, ...]:
    """Return the meaning of each attribute, in the order of Attribute."""
    return tuple(_TEXTS[locale]["attributes"][attribute.value] for attribute in Attribute)


def note(prefix: Prompt, polarity_index: int, locale: str = "en") -> Prompt:
    """Ask for a note on the first answer: one claim, its quote and the correction."""
    texts = _TEXTS[locale]
    text = texts["note"].format(texts["polarities"][polarity_index])
    return Prompt(version=prefix.version, parts=(*prefix.parts, Text(text=text)))
