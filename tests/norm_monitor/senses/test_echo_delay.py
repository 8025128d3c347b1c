"""Ears follow how long after its stated starts the robot is audible, and state a drift from what was measured."""

from pathlib import Path

import numpy as np
import pytest

from norm_core.bags.reader import BagReader
from norm_core.records.speech import Timing
from norm_core.runtime.health_log import HealthLog
from norm_core.runtime.time import NS_PER_MS, NS_PER_S
from norm_monitor.ears import Ears
from norm_monitor.senses.microphone.block_stream import BLOCK_NS, RATE_HZ, Block
from norm_monitor.senses.robot_voice.speaker_attribution import EchoDelay
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from tests.calibration.sensor_bags import AUDIO, ROBOT, Room, speech_bag


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
