"""Sound of another rate than the stated one, by the stamps of messages or by their arrival."""

import numpy as np
import pytest

from norm_core.runtime.health_log import HealthLog
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.ears import Ears
from norm_monitor.senses.microphone.audio_message import SoundChunk
from norm_monitor.senses.microphone.block_stream import SampleRateCheck, other_rate_hz
from norm_monitor.senses.speech.audio_front_end import HearingConfig


def arrivals(rate_hz: int, length_s: float = 12.0, pauses: bool = False) -> list[tuple[float, int]]:
    """The second at which each message comes, and its samples: ten a second, where nothing pauses."""
    at_s = [number / 10 for number in range(round(length_s * 10))]
    return [(each, rate_hz // 10) for each in at_s if not (pauses and each % 4 > 2)]


def delayed(messages: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """A second in which the machine stands still, and then all of it at once."""
    return [(max(at_s, 1.0), samples) for at_s, samples in messages]


@pytest.mark.parametrize("is_stamped", [True, False], ids=["stamped", "by arrival"])
@pytest.mark.parametrize(
    ("messages", "stated_hz", "other_hz"),
    [
        (arrivals(48_000), 16_000, 48_000),
        (arrivals(16_000), 48_000, 16_000),
        (arrivals(44_100, 50), 48_000, None),  # as many may be lost
        (arrivals(48_000, 50), 44_100, 48_000),
        (arrivals(37_000), 16_000, 37_000),
        (arrivals(16_000), 16_000, None),
        (arrivals(16_200, 120), 16_000, None),
        (arrivals(16_000, 60, pauses=True), 16_000, None),
        (delayed(arrivals(16_000)), 16_000, None),
        (arrivals(48_000, 4), 16_000, None),
    ],
)
def test_another_rate_is_measured(
    messages: list[tuple[float, int]], stated_hz: int, other_hz: int | None, is_stamped: bool
) -> None:
    check = SampleRateCheck()
    for at_s, count in messages:
        at_ns = NS_PER_S + s_to_ns(at_s)
        samples = np.zeros((count, 1), np.float32)
        chunk = SoundChunk(samples=samples, rate_hz=stated_hz, stamp_ns=at_ns if is_stamped else None)
        check.take(chunk, 0 if is_stamped else at_ns)
    assert check.other_hz == other_hz


def test_two_publishers_bring_twice_the_sound() -> None:
    check = SampleRateCheck()
    for number in range(200):
        at_ns = number // 2 * NS_PER_S // 10 - number % 2 * NS_PER_S // 50
        chunk = SoundChunk(samples=np.zeros((1_600, 1), np.float32), rate_hz=16_000, stamp_ns=NS_PER_S + at_ns)
        check.take(chunk, 0)
    assert check.other_hz == 32_000


def test_a_rate_that_becomes_right_is_right() -> None:
    check = SampleRateCheck()
    for number in range(2_000):
        count = 4_800 if number < 100 else 1_600
        chunk = SoundChunk(samples=np.zeros((count, 1), np.float32), rate_hz=16_000, stamp_ns=number * NS_PER_S // 10)
        check.take(chunk, 0)
        assert number != 99 or check.other_hz == 48_000
    assert check.other_hz is None


def test_ears_state_the_measured_rate_with_its_remedy() -> None:
    health_log = HealthLog()
    ears = Ears(HearingConfig(), health_log, audio_topic="/audio")
    for number in range(80):
        chunk = SoundChunk(samples=np.zeros((4_800, 1), np.float32), rate_hz=16_000, stamp_ns=None)
        list(ears.take_sound(chunk, NS_PER_S + number * NS_PER_S // 10))
    (reason,) = health_log.reasons
    assert reason.startswith("/audio: about 48000 samples a second arrive")
    assert "set rate_hz of ears to 48000" in reason


@pytest.mark.parametrize(("samples", "other_hz"), [(48_000, 16_000), (24_000, 8_000), (96_000, 32_000)])
def test_three_seconds_show_a_multiple(samples: int, other_hz: int) -> None:
    stated_hz = 16_000
    assert other_rate_hz(samples, 3.0, stated_hz, 0.5) == (None if other_hz == stated_hz else other_hz)
