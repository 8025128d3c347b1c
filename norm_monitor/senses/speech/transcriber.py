"""The slow stage: speech segments to utterances."""

from collections import Counter

from norm_core.records.speech import Utterance
from norm_core.runtime.time import ns_to_s
from norm_monitor.senses.robot_voice.speaker_attribution import AttributedSpeech, EchoLevel, attribute_words
from norm_monitor.senses.speech.audio_front_end import SpeechSegment
from norm_monitor.senses.speech.recognition import HallucinationKind, RecognizedSpeech, Recognizer, detect_hallucination
from norm_monitor.senses.speech.segmenter import AudioSegment, SegmentStage


class Transcriber:
    """A converter of speech segments into utterances. It is slow, and for one thread."""

    def __init__(self, recognizer: Recognizer, source_topic: str) -> None:
        self._recognizer = recognizer
        self._source_topic = source_topic
        self._echo = EchoLevel()
        self._ahead: tuple[tuple[int, int, int], RecognizedSpeech] | None = None
        self.counts: Counter[str] = Counter()

    def transcribe(self, speech: SpeechSegment) -> list[Utterance]:
        """Return the utterances of a segment; none if its end is only likely, or its text is a hallucination."""
        segment = speech.segment
        recognized = self._recognize(segment)
        if segment.stage is SegmentStage.LIKELY:
            return []
        hallucination = detect_hallucination(recognized, ns_to_s(segment.end_ns - segment.start_ns))
        if hallucination is not HallucinationKind.NONE:
            self.counts[f"hallucinations_{hallucination}"] += 1
            return []
        attributed = AttributedSpeech(
            segment=segment, recognized=recognized, robot=speech.robot, source_topic=self._source_topic
        )
        return attribute_words(attributed, self._echo)

    def _recognize(self, segment: AudioSegment) -> RecognizedSpeech:
        """Recognize a segment. A final segment usually reuses the result of its likely one."""
        key = (segment.sound_ns, segment.end_ns, len(segment.samples))
        ahead, self._ahead = self._ahead, None
        if segment.final and ahead and ahead[0] == key:
            self.counts["segments_transcribed_early"] += 1
            return ahead[1]
        recognized = self._recognizer.recognize(segment)
        if segment.stage is SegmentStage.LIKELY:
            self._ahead = (key, recognized)
        return recognized
