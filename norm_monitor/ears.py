"""Ears: sound, messages about robot speech and external transcripts in; utterances and silence marks out.

There are two stages: fast segmentation and slow transcription. Without a queue, both run in the caller's thread. With a
queue, the `take_...` methods only fill it, and a second thread calls `transcribe`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from norm_core.engines.providers import make_fault_reporter
from norm_core.health.health_log import HealthLog
from norm_core.records.speech import RobotSpeech, SpeechEdge, Timing, Utterance
from norm_core.records.status import Health
from norm_core.records.text_limits import cut_texts
from norm_core.runtime.time import NS_PER_MS
from norm_core.streams.bounded_queue import BoundedQueue
from norm_monitor.senses.microphone.audio_message import SoundChunk
from norm_monitor.senses.microphone.sample_rate import describe_rate_problem, describe_rate_remedy
from norm_monitor.senses.robot_voice.robot_audio import LATENESS_NS, RobotAudio
from norm_monitor.senses.robot_voice.robot_messages import NotRobotSpeechError, RobotVoiceState
from norm_monitor.senses.robot_voice.robot_speech_adapter import RobotSpeechAdapter
from norm_monitor.senses.robot_voice.speaker_attribution import attribute_text
from norm_monitor.senses.speech.audio_front_end import AudioFrontEnd, HearingConfig, SpeechSegment
from norm_monitor.senses.speech.external_recognizer import LATENESS_NS as WORDS_LATENESS_NS
from norm_monitor.senses.speech.recognition import Recognizer
from norm_monitor.senses.speech.silence_marks import SilenceMarks
from norm_monitor.senses.speech.transcriber import Transcriber
from norm_monitor.senses.speech.voices import Voices

HeardRecord = Utterance | RobotSpeech
_FREE_MEMORY = "free memory, or use a smaller Whisper model"


def describe_late_sound(topic: str) -> str:
    """Describe sound without stamps that comes late, with a remedy."""
    return (
        f"{topic}: its messages have no stamps, and some came over 0.3 s late, so no flag is raised on timing then; "
        "use a driver that stamps its sound, or relieve the computer that takes or records it"
    )


class Ears:
    """The speech front end of one microphone. Call it from one thread, in the order of arrival.

    Call `advance` with the time of a message before the `take_...` method that reads it.
    """

    def __init__(  # noqa: PLR0917
        self,
        config: HearingConfig,
        health_log: HealthLog,
        recognizer: Recognizer | None = None,
        audio_topic: str = "",
        queue: BoundedQueue[SpeechSegment] | None = None,
        robot_speaker_ids: tuple[str, ...] = (),
        *,
        robot_offset_ns: int = 0,
    ) -> None:
        """Accept only robot speech and external transcripts if there is no recognizer.

        `robot_offset_ns` is added to the starts and stops of robot speech.
        """
        self._config, self._robot_offset_ns = config, robot_offset_ns
        self._on_fault = make_fault_reporter(health_log, "voice activity", "voice_providers of ears")
        self._front_end = AudioFrontEnd(config, self._on_fault)
        # Edges that are brought forward come later beside the sound.
        self._front_end.robot.allow_lateness(config.robot_lateness_ms * NS_PER_MS - min(0, self._robot_offset_ns))
        self._transcriber = Transcriber(recognizer, audio_topic) if recognizer else None
        self._robot_transcriber = Transcriber(recognizer, audio_topic) if recognizer else None
        self._marks = SilenceMarks(audio_topic)
        self._audio_topic = audio_topic
        self._health_log, self._queue = health_log, queue
        self._words = Voices("")
        self.awaits_words = False  # whether a recognizer is there, so that no text means silence
        self._robot = RobotSpeechAdapter(health_log, robot_speaker_ids)
        self._robot_audio: dict[str, RobotAudio] = {}  # by topic

    @property
    def is_somebody_speaking(self) -> bool:
        """Whether the sound holds speech that has not ended."""
        return self._front_end.segmenter.onset_ns is not None

    def take_audio(self, message: Any, arrival_ns: int) -> list[Utterance]:
        """Read an audio message. Raises SoundError if it is unusable."""
        with self._pass_on_counts():
            segments = self._front_end.take_audio(message, arrival_ns)
        return self._transcribe_segments(segments)

    def set_audio_format(self, info: Any) -> None:
        """Set the format of raw bytes. Raises SoundError, also for each later message, if it is unusable."""
        self._front_end.set_audio_format(info)

    def take_sound(self, chunk: SoundChunk, arrival_ns: int) -> list[Utterance]:
        """Read samples. Raises SoundError if they are unusable."""
        with self._pass_on_counts():
            segments = self._front_end.take_sound(chunk, arrival_ns)
        return self._transcribe_segments(segments)

    def take_robot_speech(self, message: Any, arrival_ns: int, topic: str = "") -> list[RobotSpeech]:
        """Read a message about robot speech, or its sound; return starts and stops.

        Raises NotRobotSpeechError if the message is of another kind, and SoundError if its sound is unusable.
        """
        try:
            edges = self._robot.feed(message, arrival_ns, topic)
        except NotRobotSpeechError:
            audio = self._robot_audio.get(topic) or RobotAudio(self._config, topic, self._on_fault)
            states = audio.take(message, arrival_ns)
            self._robot_audio[topic] = audio
            self._front_end.robot.allow_lateness(LATENESS_NS - min(0, self._robot_offset_ns))
            return self._feed_robot_audio(states)
        return self._feed_robot_speech(edges)

    def lose_robot_topic(self, topic: str, now_ns: int) -> list[RobotSpeech]:
        """End the robot speech whose times came from a topic that nobody publishes any more."""
        return self._feed_robot_speech(self._robot.lose_topic(topic, now_ns))

    def expect_words(self, topic: str, lateness_ns: int = WORDS_LATENESS_NS) -> None:
        """Expect the words of people from an external recognizer, and mark silence between them.

        If there is a topic for each voice, {} stands for the id of the voice in its name.
        """
        self._words, self._marks = Voices(topic, lateness_ns), SilenceMarks(topic)
        self.awaits_words = True

    def advance(self, now_ns: int) -> list[HeardRecord]:
        """Return the records due at a time: late sound, stops of robot speech, and marks of silence."""
        due: list[HeardRecord] = [*self._transcribe_segments(self._front_end.advance(now_ns))]
        for audio in self._robot_audio.values():
            due += self._feed_robot_audio(audio.advance(now_ns))
        due += self._feed_robot_speech(self._robot.advance(now_ns))
        if self.awaits_words:
            due += self._marks.mark_at(now_ns, self._words.quiet_until_ns(now_ns))
        return due

    def take_words(self, message: Any, arrival_ns: int, voice_id: str = "") -> list[Utterance]:
        """Read the text of an external recognizer. Raises NotSpeechError if the message has none."""
        quiet_until_ns = self._words.quiet_until_ns(arrival_ns)
        transcript = self._words.take_text(message, arrival_ns, voice_id)
        if transcript is None:
            return []
        utterance, cut = cut_texts(transcript)
        self._health_log.note_cut_texts(cut)
        if utterance.timing is not Timing.ABSENT:
            robot = self._front_end.robot.find_context(utterance.start_ns, utterance.end_ns)
            utterance = attribute_text(utterance, robot)
        if self.awaits_words and utterance.start_ns < quiet_until_ns:
            self._health_log.count("words_late")
        return [utterance]

    def take_is_speaking(self, speaking: bool, arrival_ns: int, voice_id: str = "") -> None:
        """Read the start or end of voice activity for the texts of an external recognizer."""
        self._words.set_speaking(speaking, arrival_ns, voice_id)

    def take_voice(self, message: Any, arrival_ns: int, topic: str) -> list[Utterance]:
        """Read a message about voices (REP-155); `topic` lies in the namespace of humans, such as voices/ID/speech."""
        match topic.split("/"):
            case ["voices", voice_id, "speech"]:
                return self.take_words(message, arrival_ns, voice_id)
            case ["voices", voice_id, "is_speaking"]:
                self.take_is_speaking(bool(message.data), arrival_ns, voice_id)
            case ["voices", "tracked"]:
                if not self._words.track(message, arrival_ns):
                    self._health_log.count("voice_lists_late")
            case ["persons", person_id, "voice_id"]:
                self._words.owners.set_voice(person_id, str(message.data))
            case _:
                self._words.owners.add_match(message)
        return []

    def end_input(self) -> list[HeardRecord]:
        """End the stream and any speech in progress; later sound starts a new stream."""
        heard: list[HeardRecord] = []
        for audio in self._robot_audio.values():
            heard += self._feed_robot_audio(audio.flush())
        heard += self._feed_robot_speech(self._robot.end_input())
        return [*heard, *self._transcribe_segments(self._front_end.flush())]

    def transcribe(self, timeout_s: float) -> Iterator[HeardRecord]:
        """Yield the words of the next queued segment, if one comes within `timeout_s`; for the second thread alone.

        Publish each record before asking for the next, or a later mark of the first thread overtakes it.
        """
        assert self._queue is not None
        speech = self._queue.get(timeout_s)
        if speech is None:
            return
        try:
            yield from self._transcribe_robot(speech) if speech.is_robot_output else self._transcribe_person(speech)
            self._health_log.clear_issue("transcriber")
        except MemoryError as error:
            self._report_untranscribed(error, _FREE_MEMORY)
        except OSError as error:
            self._report_untranscribed(error, "check the files of the Whisper model and their disk")
        except RuntimeError as error:  # CTranslate2 raises it for any failure
            is_memory = "memory" in str(error).lower()
            self._report_untranscribed(error, _FREE_MEMORY if is_memory else "use another whisper_device of ears")
        except Exception:  # a fault of the program: the guard of the thread logs it, and silence goes on
            yield from self._marks.finish_words()
            raise
        yield from self._marks.finish_words()

    def _report_untranscribed(self, error: Exception, remedy: str) -> None:
        """Count a segment that was not transcribed, and report why in the status."""
        self._health_log.count("segments_not_transcribed")
        why = f"ears: a speech segment was not transcribed: {str(error) or type(error).__name__}; {remedy}"
        self._health_log.raise_issue("transcriber", Health.DEGRADED, why)

    def _feed_robot_speech(self, reported_edges: Iterable[RobotSpeech]) -> list[RobotSpeech]:
        """Return starts and stops with the measured offset, and give them to the front end."""
        edges = []
        for reported in reported_edges:
            edge, cut = cut_texts(replace(reported, stamp_ns=reported.stamp_ns + self._robot_offset_ns))
            self._health_log.note_cut_texts(cut)
            self._front_end.take_robot_speech(edge)
            edges.append(edge)
        self._add_counts(self._front_end.counts)
        return edges

    def _feed_robot_audio(self, states: Iterable[RobotVoiceState | SpeechSegment]) -> list[RobotSpeech]:
        """Time robot speech by its sound; transcribe it unless another topic gives its words."""
        edges: list[RobotSpeech] = []
        for state in states:
            if isinstance(state, RobotVoiceState):
                edges += self._feed_robot_speech(self._robot.take_event(state))
            elif self._robot_transcriber and not self._robot.gives_words:
                if self._queue is None:
                    edges += self._transcribe_robot(state)
                else:
                    self._enqueue(state, self._queue)
        return edges

    def _transcribe_segments(self, segments: Iterable[SpeechSegment]) -> list[Utterance]:
        """Transcribe segments here or queue them; then mark the silence after them."""
        utterances: list[Utterance] = []
        for speech in segments:
            if self._queue is None:
                utterances += self._transcribe_person(speech)
            else:
                self._enqueue(speech, self._queue)
        self._add_counts(self._front_end.counts)
        self._report_rate()
        self._report_lateness()
        if self._transcriber:
            is_rough = self._front_end.is_timing_uncertain
            utterances += self._marks.mark(self._front_end.quiet_until_ns, is_rough=is_rough)
        return utterances

    @contextmanager
    def _pass_on_counts(self) -> Iterator[None]:
        """Pass on the counts of the front end, also if it refuses a message."""
        try:
            yield
        finally:
            self._add_counts(self._front_end.counts)

    def _report_rate(self) -> None:
        """Report in the status that samples arrive at another rate than the stated one."""
        other_hz = self._front_end.sample_rate.other_hz
        if other_hz is None:
            self._health_log.clear_issue("audio rate")
        else:
            why = f"{self._audio_topic}: {describe_rate_problem(other_hz)}; {describe_rate_remedy(other_hz)}"
            self._health_log.raise_issue("audio rate", Health.DEGRADED, why)

    def _report_lateness(self) -> None:
        """Report in the status that sound without stamps comes so late that timing is uncertain."""
        has_rate = self._front_end.sample_rate.other_hz is None  # a wrong rate makes sound seem late
        if has_rate and self._front_end.is_timing_uncertain:
            self._health_log.raise_issue("audio lateness", Health.DEGRADED, describe_late_sound(self._audio_topic))
        else:
            self._health_log.clear_issue("audio lateness")

    def _enqueue(self, speech: SpeechSegment, queue: BoundedQueue[SpeechSegment]) -> None:
        """Queue a segment for the second thread; skip a partial one while others wait."""
        if not speech.segment.final and queue.status().depth:
            self._health_log.count("partials_skipped")  # a waiting segment matters more
            return
        self._marks.add_words()
        if not queue.put(speech):
            self._marks.drop_words()

    def _transcribe_person(self, speech: SpeechSegment) -> list[Utterance]:
        """Transcribe the speech of people; return nothing without a recognizer."""
        if self._transcriber is None:
            return []
        utterances = self._transcriber.transcribe(speech)
        self._add_counts(self._transcriber.counts)
        return utterances

    def _transcribe_robot(self, speech: SpeechSegment) -> list[RobotSpeech]:
        """Transcribe robot speech, and return its start and stop again, with the words."""
        if self._robot_transcriber is None:
            return []
        recognized = self._robot_transcriber.transcribe(speech)
        self._add_counts(self._robot_transcriber.counts)
        return [
            RobotSpeech(
                stamp_ns=stamp_ns + self._robot_offset_ns,
                speech_id=f"voice-{word.start_ns}",
                state=state,
                text=word.text,
                locale=word.locale,
            )
            for word in recognized
            for stamp_ns, state in ((word.start_ns, SpeechEdge.START), (word.end_ns, SpeechEdge.STOP))
        ]

    def _add_counts(self, counts: Counter[str]) -> None:
        """Move counts to the status."""
        for name, count in counts.items():
            self._health_log.count(name, count)
        counts.clear()
