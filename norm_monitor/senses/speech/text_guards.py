"""What a recogniser makes up where nobody spoke: named, so that it is counted and not believed."""

from enum import StrEnum

from pydantic import Field

from norm_core.runtime.config import Config
from norm_monitor.senses.speech.recognition import RecognizedSpeech
from norm_monitor.senses.speech.words import normalize


class HallucinationKind(StrEnum):
    NONE = "none"
    EMPTY = "empty"  # no word at all
    NO_SPEECH = "no_speech"  # the model itself holds that nobody spoke, and is unsure of the words
    LOOP = "loop"  # the same words over and over
    IN_SILENCE = "in_silence"  # words faster than anyone speaks, or outside the speech


class GuardConfig(Config):
    no_speech_probability: float = Field(
        default=0.6, gt=0, le=1, description="above this, unsure words are not believed"
    )
    unsure_probability: float = Field(default=0.4, ge=0, le=1, description="words less probable than this are unsure")
    repeats: int = Field(default=4, ge=2, le=20, description="so many repeats of the same words in a row are a loop")
    words_per_s: float = Field(default=9.0, gt=0, description="more words in a second than anyone speaks")


def hallucination_in(heard: RecognizedSpeech, speech_s: float, config: GuardConfig) -> HallucinationKind:
    """Why heard, from so many seconds of speech, is not to be believed."""
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
    """True where some run of one to eight words stands so many times in a row and makes up most of the text."""
    for length in range(1, min(8, len(words) // repeats) + 1):
        matched = 0
        for earlier, later in zip(words, words[length:], strict=False):
            matched = matched + 1 if earlier == later else 0
            if matched >= length * (repeats - 1) and matched + length > len(words) // 2:
                return True
    return False
