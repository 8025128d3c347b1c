"""The recognized words of one segment, and the hallucinations among them, which are counted and dropped."""

import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Protocol

from pydantic import Field

from norm_core.records.record import record
from norm_core.records.speech import Word
from norm_core.runtime.config import Config
from norm_monitor.senses.speech.segmenter import AudioSegment

# Chinese and Japanese, which are compared by character; Thai, Lao, Burmese and Khmer are written without spaces too.
_CHARACTERS = r"\u3040-\u30ff\u3400-\u9fff"
_UNSPACED = rf"{_CHARACTERS}\u3000-\u303f\uff00-\uff65\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_CHARACTER = re.compile(rf"[{_CHARACTERS}]")
_TOKEN = re.compile(rf"[{_CHARACTERS}]|[^\W_]+(?:['’][^\W_]+)*")
_NO_SPACE = re.compile(rf"(?<=[{_UNSPACED}]) | (?=[{_UNSPACED}])")

# Letters that a recognizer confuses share a class here; vowels are ignored.
_ALIKE = str.maketrans("bckqgdvfzxjm", "pkkkktffsssn", "aeiouyhw'")
_SHORTEST_RUN = 3  # of consonants; a shorter run matches in any text


def normalize(text: str) -> list[str]:
    """Return the normalized words of a text."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return _TOKEN.findall(folded)


def is_character(word: str) -> bool:
    """Whether a normalized word is one Chinese or Japanese character, which is shorter than a word."""
    return _CHARACTER.fullmatch(word) is not None


def join_words(texts: Iterable[str]) -> str:
    """Join words with spaces, except in scripts without spaces."""
    return _NO_SPACE.sub("", " ".join(texts))


def skeleton(word: str) -> str:
    """Return a normalized word's consonants by sound class."""
    return re.sub(r"(.)\1+", r"\1", word.translate(_ALIKE))


def likeness(words: list[str], spoken: list[str]) -> list[float]:
    """Return each word's similarity, from 0 to 1, to a word of `spoken` in the same order."""
    likenesses = [0.0] * len(words)
    matcher = SequenceMatcher(a=words, b=spoken, autojunk=False)
    for block in matcher.get_matching_blocks():
        likenesses[block.a : block.a + block.size] = [1.0] * block.size
    sounds = [skeleton(word) for word in words]
    owner = [index for index, sound in enumerate(sounds) for _ in sound]
    sound_matcher = SequenceMatcher(a="".join(sounds), b="".join(map(skeleton, spoken)), autojunk=False)
    covered = [0] * len(words)
    for block in sound_matcher.get_matching_blocks():
        if block.size >= _SHORTEST_RUN:
            for index in owner[block.a : block.a + block.size]:
                covered[index] += 1
    return [
        max(whole, part / max(len(sound), 1)) for whole, part, sound in zip(likenesses, covered, sounds, strict=True)
    ]


ESTIMATE_DIGITS = 2  # of a probability that a model estimates


@record
class RecognizedSpeech:
    """Words with stamps; `confidence` is the geometric mean over the tokens of the words."""

    text: str
    locale: str
    words: tuple[Word, ...]
    confidence: float
    no_speech_probability: float


class Recognizer(Protocol):
    """A speech recognizer."""

    def recognize(self, segment: AudioSegment) -> RecognizedSpeech:
        """Return the words of a segment with their times and probabilities."""


class HallucinationKind(StrEnum):
    """The kinds of hallucinated text."""

    NONE = "none"
    EMPTY = "empty"  # no words
    NO_SPEECH = "no_speech"  # the model reports no speech, and low confidence in the words
    LOOP = "loop"  # repetition of the same words
    IN_SILENCE = "in_silence"  # words faster than speech, or outside it


class GuardConfig(Config):
    """The thresholds for hallucinated text."""

    no_speech_probability: float = Field(
        default=0.6, gt=0, le=1, description="above this, words of low confidence are dropped"
    )
    unsure_probability: float = Field(default=0.4, ge=0, le=1, description="words below this have low confidence")
    repeats: int = Field(
        default=4,
        ge=2,
        le=20,
        description="this many repeats of the same words in a row are a loop; twice as many of one Chinese character",
    )
    words_per_s: float = Field(
        default=9.0, gt=0, description="a faster rate of words is a hallucination; two Chinese characters are a word"
    )


def hallucination_in(recognized: RecognizedSpeech, speech_s: float, config: GuardConfig) -> HallucinationKind:
    """Return the kind of hallucination in a text from `speech_s` seconds of speech; None if it is credible."""
    words = normalize(recognized.text)
    if not words:
        return HallucinationKind.EMPTY
    if (
        recognized.no_speech_probability > config.no_speech_probability
        and recognized.confidence < config.unsure_probability
    ):
        return HallucinationKind.NO_SPEECH
    if is_loop(words, config.repeats):
        return HallucinationKind.LOOP
    count = sum(0.5 if is_character(word) else 1.0 for word in words)
    if count > 3 and count > config.words_per_s * speech_s:
        return HallucinationKind.IN_SILENCE
    return HallucinationKind.NONE


def is_loop(words: list[str], repeats: int) -> bool:
    """Whether a run of words repeats this often and makes up most of the text."""
    for length in range(1, len(words) // repeats + 1):
        matched = 0
        for earlier, later in zip(words, words[length:], strict=False):
            matched = matched + 1 if earlier == later else 0
            # Chinese says a character several times over, as in "thanks, thanks".
            enough = 2 * repeats if length == 1 and is_character(later) else repeats
            if matched >= length * (enough - 1) and matched + length > len(words) // 2:
                return True
    return False
