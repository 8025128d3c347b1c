"""The ears as every driver uses them: in one thread, or the slow stage in a second."""

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from types import SimpleNamespace as Fields

import numpy as np
import pytest

from norm_core.health.health_log import HealthLog
from norm_core.records.speech import Utterance
from norm_core.runtime.time import NS_PER_S, ns_to_s, s_to_ns
from norm_core.streams.bounded_queue import BoundedQueue
from norm_monitor.ears import Ears, HeardRecord
from norm_monitor.senses.microphone.audio_message import SoundChunk
from norm_monitor.senses.speech.audio_front_end import SpeechSegment
from norm_monitor.senses.speech.recognition import RecognizedSpeech
from norm_monitor.senses.speech.segmenter import AudioSegment
from tests.node_records import counted
from tests.norm_monitor.senses.speech_path import CONFIG, START_NS, LoudIsSpeech
from tests.norm_monitor.senses.test_parity import Parrot

TENTH = 1_600
WORDS_EVERY_S = 4


@pytest.fixture(autouse=True)
def loud_is_speech(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("norm_monitor.senses.speech.audio_front_end.Silero", LoudIsSpeech)


def make_sounds(seconds: int) -> Iterator[SoundChunk]:
    """Two seconds of speech every four seconds, in tenths."""
    for index in range(seconds * 10):
        loud = index % (WORDS_EVERY_S * 10) < 20
        samples = np.full((TENTH, 1), 0.3 if loud else 0.0, np.float32)
        yield SoundChunk(samples=samples, rate_hz=16_000, stamp_ns=START_NS + index * NS_PER_S // 10)


def hear_in_two_stages(seconds: int, transcribe_every: int, capacity: int = 50) -> list[Utterance]:
    """The slow stage comes round once in so many chunks, as a slow thread does."""
    queue: BoundedQueue[SpeechSegment] = BoundedQueue("speech", capacity)
    ears = Ears(CONFIG, HealthLog(), Parrot(), "mic", queue)
    records: list[HeardRecord] = []
    for index, chunk in enumerate(make_sounds(seconds)):
        records += ears.take_sound(chunk, START_NS)
        if index % transcribe_every == transcribe_every - 1:
            records += ears.transcribe(0)
    records += ears.end_input()
    while queue.status().depth:
        records += ears.transcribe(0)
    return [one for one in records if isinstance(one, Utterance)]


def hear_in_one_thread(seconds: int) -> list[Utterance]:
    ears = Ears(CONFIG, HealthLog(), Parrot(), "mic")
    records = [one for chunk in make_sounds(seconds) for one in ears.take_sound(chunk, START_NS)]
    return [one for one in (*records, *ears.end_input()) if isinstance(one, Utterance)]


@pytest.mark.parametrize("transcribe_every", [1, 7, 45, 10_000])
def test_slow_transcription_gives_the_same_words_in_order(transcribe_every: int) -> None:
    records = hear_in_two_stages(40, transcribe_every)
    alone = hear_in_one_thread(40)
    assert [one for one in records if one.text] == [one for one in alone if one.text]
    assert len([one for one in records if one.text]) == 10
    marked_ns = START_NS
    for one in records:
        assert one.start_ns >= marked_ns  # what a mark says does not come is not given after it
        marked_ns = max(marked_ns, one.start_ns) if not one.text else marked_ns
    assert not records[-1].text
    assert records[-1].start_ns == alone[-1].start_ns


def test_dropped_words_hold_up_no_silence_mark() -> None:
    records = hear_in_two_stages(60, 10_000, capacity=3)
    assert len([one for one in records if one.text]) <= 3
    assert not records[-1].text
    assert records[-1].start_ns == hear_in_one_thread(60)[-1].start_ns


class Failing:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def recognize(self, segment: AudioSegment) -> RecognizedSpeech:
        raise self._error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("CUDA failed: out of memory"), "out of memory; free memory, or use a smaller Whisper model"),
        (MemoryError(), "MemoryError; free memory"),
        (RuntimeError("cuBLAS failed"), "cuBLAS failed; use another whisper_device of ears"),
        (OSError("model.bin: stale handle"), "stale handle; check the files of the Whisper model"),
        (ValueError("a fault of the program"), ""),
    ],
)
def test_failed_transcription_names_a_remedy_and_marks_silence(error: Exception, words: str) -> None:
    health_log = HealthLog()
    queue: BoundedQueue[SpeechSegment] = BoundedQueue("speech", 50)
    ears, records = Ears(CONFIG, health_log, Failing(error), "mic", queue), list[HeardRecord]()
    for chunk in make_sounds(8):
        records += ears.take_sound(chunk, START_NS)
        with nullcontext() if words else suppress(ValueError):
            for record in ears.transcribe(0):
                records.append(record)
    assert records[-1].stamp_ns > START_NS + 7 * NS_PER_S
    if words:
        assert counted(health_log)["segments_not_transcribed"] >= 2
    assert words in " ".join(health_log.reasons)


class RobotsRecognizer:
    """A recognizer of the robot's own, and what the ears make of it; times are in seconds."""

    def __init__(self) -> None:
        self.health_log = HealthLog()
        self._ears = Ears(CONFIG, self.health_log)
        self._ears.expect_words("/transcript", lateness_ns=2 * NS_PER_S)
        self._heard: list[HeardRecord] = []

    def voice(self, speaking: bool, at_s: float) -> None:
        self._heard += self._ears.advance(START_NS + s_to_ns(at_s))
        self._ears.take_is_speaking(speaking, START_NS + s_to_ns(at_s))

    def text(self, words: str, at_s: float) -> None:
        self._heard += self._ears.advance(START_NS + s_to_ns(at_s))
        self._heard += self._ears.take_words(Fields(data=words), START_NS + s_to_ns(at_s))

    def quiet_until_s(self, at_s: float) -> float:
        """The newest mark of silence at a time."""
        self._heard += self._ears.advance(START_NS + s_to_ns(at_s))
        return ns_to_s(next(one.start_ns for one in reversed(self.utterances) if not one.text) - START_NS)

    @property
    def utterances(self) -> list[Utterance]:
        return [one for one in self._heard if isinstance(one, Utterance)]


def test_silence_around_external_words_is_marked() -> None:
    robot = RobotsRecognizer()
    robot.voice(False, 1)
    assert robot.quiet_until_s(3) == 3
    robot.voice(True, 4)
    assert robot.quiet_until_s(6) == 4  # somebody speaks
    robot.voice(False, 7)
    assert robot.quiet_until_s(8.9) == 4  # the text may still come
    robot.text("Hello", 8.9)
    assert robot.quiet_until_s(9.1) == 9.1
    assert robot.health_log.counters == ()


def test_without_a_voice_topic_marks_wait_for_the_latest_text() -> None:
    robot = RobotsRecognizer()
    assert robot.quiet_until_s(10) == 8
    robot.text("Hello", 11)
    assert robot.quiet_until_s(12) == 10


def test_endless_voice_activity_stops_holding_up_marks() -> None:
    robot = RobotsRecognizer()
    robot.voice(True, 1)
    assert robot.quiet_until_s(30) == 1
    assert robot.quiet_until_s(40) == 40


def test_mark_that_is_held_up_repeats_each_second() -> None:
    robot = RobotsRecognizer()
    robot.voice(False, 0)
    robot.voice(True, 1)
    for tenth in range(11, 60):
        robot.quiet_until_s(tenth / 10)
    assert [one.start_ns for one in robot.utterances[1:]] == [START_NS + NS_PER_S] * 5


def test_text_after_its_silence_mark_is_counted() -> None:
    robot = RobotsRecognizer()
    robot.voice(True, 1)
    robot.voice(False, 2)
    assert robot.quiet_until_s(4.5) == 4.5
    robot.text("Hello", 5)
    assert robot.utterances[-1].start_ns == START_NS + s_to_ns(1)
    assert [(one.name, one.count) for one in robot.health_log.counters] == [("words_late", 1)]
