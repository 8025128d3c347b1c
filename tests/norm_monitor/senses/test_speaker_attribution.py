"""Whose words are whose in one segment of sound, and how long after its stated starts the robot is audible."""

from pathlib import Path

import numpy as np
import pytest

from norm_core.bags.reader import BagReader
from norm_core.health.health_log import HealthLog
from norm_core.records.speech import Speaker, Timing, Utterance, Word
from norm_core.runtime.time import NS_PER_MS, NS_PER_S, ns_to_s, s_to_ns
from norm_monitor.ears import Ears
from norm_monitor.senses.microphone.block_stream import BLOCK_NS, RATE_HZ, Block
from norm_monitor.senses.robot_voice.robot_voice import RobotContext, RobotTurn
from norm_monitor.senses.robot_voice.speaker_attribution import AttributedSpeech, EchoDelay, EchoLevel, attribute_words
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from norm_monitor.senses.speech.recognition import RecognizedSpeech
from norm_monitor.senses.speech.segmenter import AudioSegment, SegmentStage
from tests.calibration.sensor_bags import AUDIO, ROBOT, Room, speech_bag

START_NS = 1_000 * NS_PER_S


def at(seconds: float) -> int:
    return START_NS + s_to_ns(seconds)


def robot_turn(start_s: float, end_s: float, text: str) -> RobotContext:
    turn = RobotTurn(
        speech_id="r",
        start_ns=at(start_s),
        end_ns=at(end_s),
        rings_until_ns=at(end_s),
        text=text,
        has_ended=True,
    )
    return RobotContext(turns=(turn,), is_known=True)


def attributed(robot: RobotContext, text: str, words_s: tuple[float, float], length_s: float) -> list[Utterance]:
    """Attribute evenly spread words in a segment that starts at second 0."""
    texts = text.split()
    bounds = np.linspace(*words_s, len(texts) + 1)
    words = tuple(
        Word(text=word, start_ns=at(start_s), end_ns=at(end_s))
        for word, start_s, end_s in zip(texts, bounds, bounds[1:], strict=False)
    )
    segment = AudioSegment(
        start_ns=at(0),
        end_ns=at(length_s),
        sound_ns=at(0),
        samples=np.zeros(int(16_000 * length_s), np.float32),
        timing=Timing.SOURCE,
        stage=SegmentStage.FINAL,
    )
    recognized = RecognizedSpeech(text=text, locale="en", words=words, confidence=0.9, no_speech_probability=0.0)
    heard = AttributedSpeech(segment=segment, recognized=recognized, robot=robot, source_topic="mic")
    return attribute_words(heard, EchoLevel(), louder_db=6.0)


def seconds(stamp_ns: int) -> float:
    return ns_to_s(stamp_ns - START_NS)


def test_a_question_ends_with_its_words_though_the_robot_talks_on() -> None:
    [said] = attributed(robot_turn(2, 14, "They met in the canteen."), "Why would you paint it?", (0, 2.4), 14)
    assert (said.speaker, seconds(said.start_ns), seconds(said.end_ns)) == (Speaker.USER, 0, 2.4)
    assert ns_to_s(said.overlap_ns) == 0.4


def test_words_over_a_garbled_robot_begin_at_their_own_time() -> None:
    [said] = attributed(robot_turn(0.5, 9, "They met in the canteen."), "Stop, that's not mine!", (7, 10), 10)
    assert (said.speaker, seconds(said.start_ns), seconds(said.end_ns)) == (Speaker.USER, 7, 10)


def test_a_person_alone_keeps_the_bounds_of_the_voice() -> None:
    [said] = attributed(robot_turn(9, 11, "You're welcome."), "Thank you so much.", (0.3, 1.5), 3)
    assert (seconds(said.start_ns), seconds(said.end_ns)) == (0, 3)


def test_a_number_in_digits_stays_with_the_words_before_it() -> None:
    robot = robot_turn(0, 9, "The lighthouse was built in eighteen eighty by two brothers.")
    found = attributed(robot, "The lighthouse was built in 1880 wait, I never asked for history!", (0, 6), 6)
    assert [(said.speaker, said.text) for said in found] == [
        (Speaker.ROBOT, "The lighthouse was built in 1880"),
        (Speaker.USER, "wait, I never asked for history!"),
    ]


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return speech_bag(tmp_path_factory.mktemp("said") / "bag", Room(offset_ms=150, events=10))


def stated(bag: Path, offset_ms: int | None) -> str:
    health_log = HealthLog()
    ears = Ears(HearingConfig(), health_log, robot_offset_ns=None if offset_ms is None else offset_ms * NS_PER_MS)
    with BagReader(bag) as reader:
        for stored in reader.messages([AUDIO, ROBOT]):
            take = ears.take_audio if stored.topic == AUDIO else ears.take_robot_speech
            list(take(reader.decode(stored), stored.stamp_ns))
    return " ".join(health_log.reasons)


def test_a_delay_that_was_not_measured_is_stated(bag: Path) -> None:
    assert "its sound comes over 40 ms after its stated starts" in stated(bag, 0)
    assert "its sound comes over 40 ms before its stated starts" in stated(bag, 250)


def test_a_delay_as_measured_is_no_drift(bag: Path) -> None:
    assert stated(bag, 150) == ""
    assert stated(bag, 120) == ""


@pytest.mark.parametrize("room", [Room(shuffled=True, events=10), Room(snr_db=0, offset_ms=0, events=10)])
def test_what_cannot_be_told_is_no_drift(tmp_path: Path, room: Room) -> None:
    assert stated(speech_bag(tmp_path / "bag", room), 0) == ""


def test_a_voice_that_is_no_longer_near_its_starts_has_no_delay() -> None:
    delay, late_s = EchoDelay(), [0.0] * 12 + [0.7] * 14
    random = np.random.default_rng(0)
    sound = random.normal(0, 0.001, 60 * RATE_HZ).astype(np.float32)
    starts = [3.0 + 2 * number for number in range(len(late_s))]
    for at_s, late in zip(starts, late_s, strict=True):
        begin = round((at_s + late) * RATE_HZ)
        sound[begin : begin + RATE_HZ // 2] += random.normal(0, 0.2, RATE_HZ // 2).astype(np.float32)
    size = RATE_HZ * BLOCK_NS // NS_PER_S
    known = []
    for number in range(len(sound) // size):
        stamp_ns = NS_PER_S + number * BLOCK_NS
        for at_s in starts:
            if stamp_ns <= NS_PER_S + at_s * NS_PER_S < stamp_ns + BLOCK_NS:
                delay.take_start(NS_PER_S + round(at_s * NS_PER_S))
        samples = sound[number * size : (number + 1) * size]
        delay.take_block(Block(stamp_ns=stamp_ns, samples=samples, timing=Timing.SOURCE, starts_anew=False))
        known.append(delay.delay_ms)
    assert any(one is not None and abs(one) < 10 for one in known)
    assert known[-1] is None
