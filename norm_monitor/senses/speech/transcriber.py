"""The slow stage: speech segments to utterances."""

from collections import Counter

from norm_core.records.speech import Utterance
from norm_core.runtime.time import ns_to_s
from norm_monitor.senses.robot_voice.speaker_attribution import AttributedSpeech, EchoLevel, attribute_words
from norm_monitor.senses.speech.audio_front_end import HearingConfig, SpeechSegment
from norm_monitor.senses.speech.recognition import HallucinationKind, RecognizedSpeech, Recognizer, detect_hallucination
from norm_monitor.senses.speech.segmenter import AudioSegment, SegmentStage


class Transcriber:
    """Turn speech segments into utterances; slow, and for one thread."""

    def __init__(self, config: HearingConfig, recognizer: Recognizer, source_topic: str) -> None:
        self._config, self._recognizer, self._source_topic = config, recognizer, source_topic
        self._echo = EchoLevel()
        self._ahead: tuple[tuple[int, int, int], RecognizedSpeech] | None = None
        self.counts: Counter[str] = Counter()

    def transcribe(self, speech: SpeechSegment) -> list[Utterance]:
        """Return a segment's utterances; none if it is only likely to have ended, or its text is a hallucination."""
        segment = speech.segment
        recognized = self._recognize(segment)
        if segment.stage is SegmentStage.LIKELY:
            return []
        why = detect_hallucination(recognized, ns_to_s(segment.end_ns - segment.start_ns), self._config.guards)
        if why is not HallucinationKind.NONE:
            self.counts[f"hallucinations_{why}"] += 1
            return []
        attributed = AttributedSpeech(
            segment=segment, recognized=recognized, robot=speech.robot, source_topic=self._source_topic
        )
        return attribute_words(attributed, self._echo, self._config.robot.louder_db)

    def _recognize(self, segment: AudioSegment) -> RecognizedSpeech:
        """Recognize a segment; a final one usually reuses the result of its likely one."""
        key = (segment.sound_ns, segment.end_ns, len(segment.samples))
        ahead, self._ahead = self._ahead, None
        if segment.final and ahead and ahead[0] == key:
            self.counts["segments_transcribed_early"] += 1
            return ahead[1]
        recognized = self._recognizer.recognize(segment)
        if segment.stage is SegmentStage.LIKELY:
            self._ahead = (key, recognized)
        return recognized
