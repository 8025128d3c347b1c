"""The recognized words of one segment, and the hallucinations among them, which are counted and dropped."""

from enum import StrEnum
from typing import Protocol

from norm_core.records.record import record
from norm_core.records.speech import Word
from norm_monitor.context.spoken_words import is_character, normalize
from norm_monitor.senses.speech.segmenter import AudioSegment

# The digits of a probability that a model estimates.
ESTIMATE_DIGITS = 2
# Words are dropped if the model's probability of no speech is higher, and its confidence in the words is lower.
_NO_SPEECH_THRESHOLD = 0.6
_CONFIDENCE_THRESHOLD = 0.4
# Repetitions of the same words from which a text is a loop; of a single Chinese character, twice as many.
_MIN_REPEATS = 4
# A faster rate of words is a hallucination. Two Chinese characters count as a word.
_MAX_WORDS_PER_S = 9.0
# Number of words below which any rate of speech is plausible.
_MAX_WORDS_ANYWAY = 3


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


def detect_hallucination(recognized: RecognizedSpeech, speech_s: float) -> HallucinationKind:
    """Return the kind of hallucination in a text from `speech_s` seconds of speech; NONE if it is credible."""
    words = normalize(recognized.text)
    if not words:
        return HallucinationKind.EMPTY
    if recognized.no_speech_probability > _NO_SPEECH_THRESHOLD and recognized.confidence < _CONFIDENCE_THRESHOLD:
        return HallucinationKind.NO_SPEECH
    if _is_loop(words):
        return HallucinationKind.LOOP
    word_count = sum(0.5 if is_character(word) else 1.0 for word in words)
    if word_count > _MAX_WORDS_ANYWAY and word_count > _MAX_WORDS_PER_S * speech_s:
        return HallucinationKind.IN_SILENCE
    return HallucinationKind.NONE


def _is_loop(words: list[str]) -> bool:
    """Whether a run of words repeats often and makes up most of the text."""
    for length in range(1, len(words) // _MIN_REPEATS + 1):
        matched = 0
        for earlier, later in zip(words, words[length:], strict=False):
            matched = matched + 1 if earlier == later else 0
            # Chinese repeats single characters, as in "thanks, thanks".
            min_repeats = 2 * _MIN_REPEATS if length == 1 and is_character(later) else _MIN_REPEATS
            if matched >= length * (min_repeats - 1) and matched + length > len(words) // 2:
                return True
    return False
