"""The recognized words of one segment."""

from typing import Protocol

from norm_core.records.record import record
from norm_core.records.speech import Word
from norm_core.runtime.latency_budget import LatencyBudget
from norm_monitor.senses.speech.segmenter import AudioSegment


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


class TimedRecognizer:
    """A recognizer that times each segment."""

    def __init__(self, recognizer: Recognizer, budget: LatencyBudget) -> None:
        self._recognizer, self._budget = recognizer, budget

    def recognize(self, segment: AudioSegment) -> RecognizedSpeech:
        """Return the words of a segment."""
        with self._budget.timed():
            return self._recognizer.recognize(segment)
