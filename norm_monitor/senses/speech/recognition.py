"""The recognized words of one segment, and the hallucinations among them, which are counted and dropped."""

from enum import StrEnum
from typing import Protocol

from pydantic import Field

from norm_core.records.record import record
from norm_core.records.speech import Word
from norm_core.runtime.config import Config
from norm_monitor.context.spoken_words import is_character, normalize
from norm_monitor.senses.speech.segmenter import AudioSegment

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


def detect_hallucination(recognized: RecognizedSpeech, speech_s: float, config: GuardConfig) -> HallucinationKind:
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
