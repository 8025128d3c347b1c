"""Detect a recognizer's hallucinations by kind, so that they are counted and dropped."""

from enum import StrEnum

from pydantic import Field

from norm_core.runtime.config import Config
from norm_monitor.senses.speech.recognition import RecognizedSpeech
from norm_monitor.senses.speech.words import normalize


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
    repeats: int = Field(default=4, ge=2, le=20, description="this many repeats of the same words in a row are a loop")
    words_per_s: float = Field(default=9.0, gt=0, description="a faster rate of words is a hallucination")


def hallucination_in(heard: RecognizedSpeech, speech_s: float, config: GuardConfig) -> HallucinationKind:
    """Return the kind of hallucination in a text from `speech_s` seconds of speech; None if it is credible."""
    words = normalize(heard.text)
    if not words:
        return HallucinationKind.EMPTY
    if heard.no_speech_probability > config.no_speech_probability and heard.confidence < config.unsure_probability:
        return HallucinationKind.NO_SPEECH
    if is_loop(words, config.repeats):
        return HallucinationKind.LOOP
    if len(words) > 3 and len(words) > config.words_per_s * speech_s:
        return HallucinationKind.IN_SILENCE
    return HallucinationKind.NONE


def is_loop(words: list[str], repeats: int) -> bool:
    """Whether a run of one to eight words repeats this often and makes up most of the text."""
    for length in range(1, min(8, len(words) // repeats) + 1):
        matched = 0
        for earlier, later in zip(words, words[length:], strict=False):
            matched = matched + 1 if earlier == later else 0
            if matched >= length * (repeats - 1) and matched + length > len(words) // 2:
                return True
    return False
