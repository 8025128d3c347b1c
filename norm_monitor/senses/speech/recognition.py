"""The recognized words of one segment."""

from typing import Protocol

from norm_core.records.record import record
from norm_core.records.speech import Word
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
