"""The microphone's stream and the state machine: the same whatever the chunks are, and nothing is fatal."""

from array import array
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from norm_core.health.health_log import HealthLog
from norm_core.records.speech import Timing, Utterance
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_core.streams.bounded_queue import OverflowPolicy
from norm_monitor.ears import Ears
from norm_monitor.senses.microphone.audio_message import SoundChunk, decode
from norm_monitor.senses.microphone.block_stream import BLOCK_NS, Block, Microphone
from norm_monitor.senses.microphone.pcm import PcmFormat, Resampler, SoundError
from norm_monitor.senses.microphone.sample_rate import SampleRateCheck
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from norm_monitor.senses.speech.segmenter import VoiceActivity
from tests.norm_monitor.senses.speech_path import CONFIG, LoudIsSpeech
from tests.norm_monitor.senses.test_parity import Parrot

START_NS = 1_000 * NS_PER_S
STATED = PcmFormat()


def resampled(sound: np.ndarray, rate_hz: int, cuts: list[int]) -> np.ndarray:
    resampler = Resampler(rate_hz, 16_000, 512)
    blocks = [block for part in np.split(sound, sorted(cuts)) for block in resampler.feed(part)]
    return np.concatenate([*blocks, *resampler.flush()])


@settings(max_examples=40, deadline=None)
@given(
    rate_hz=st.sampled_from([8_000, 11_025, 16_000, 22_050, 44_100, 48_000, 96_000]),
    cuts=st.lists(st.integers(0, 6_000), max_size=12),
)
def test_resampling_gives_the_same_samples_for_any_chunking(rate_hz: int, cuts: list[int]) -> None:
    sound = np.random.default_rng(rate_hz).standard_normal(6_000).astype(np.float32)
    assert np.array_equal(resampled(sound, rate_hz, cuts), resampled(sound, rate_hz, []))


@pytest.mark.parametrize("rate_hz", [8_000, 22_050, 44_100, 48_000, 96_000])
def test_resampling_keeps_a_tone_and_its_time(rate_hz: int) -> None:
    tone = np.sin(2 * np.pi * 440 * np.arange(rate_hz) / rate_hz).astype(np.float32)
    ideal = np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)
    result = resampled(tone, rate_hz, [777])
    assert np.abs(result[500:15_500] - ideal[500:15_500]).max() < 2e-3


def test_a_tone_above_the_band_does_not_fold_back() -> None:
    tone = np.sin(2 * np.pi * 12_000 * np.arange(48_000) / 48_000).astype(np.float32)
    assert np.abs(resampled(tone, 48_000, [])[500:15_500]).max() < 1e-3


@settings(max_examples=100, deadline=None)
@given(probabilities=st.lists(st.floats(0, 1), max_size=200))
def test_onsets_and_offsets_alternate_in_the_order_of_time(probabilities: list[float]) -> None:
    voice = VoiceActivity()
    changes: list[tuple[int, bool]] = []
    for index, probability in enumerate(probabilities):
        changed_ns = voice.feed(probability, index * BLOCK_NS, (index + 1) * BLOCK_NS)
        changes += [] if changed_ns is None else [(changed_ns, voice.is_speaking)]
    offset_ns = voice.finish(len(probabilities) * BLOCK_NS)
    changes += [] if offset_ns is None else [(offset_ns, voice.is_speaking)]
    assert [is_onset for _, is_onset in changes] == [True, False] * (len(changes) // 2)
    assert changes == sorted(changes, key=lambda change: change[0])


def chunk(stamp_ns: int | None, samples: int = 1_600, rate_hz: int = 16_000) -> SoundChunk:
    return SoundChunk(samples=np.full((samples, 1), 0.1, np.float32), rate_hz=rate_hz, stamp_ns=stamp_ns)


def heard(stamps_ns: list[int | None], rates_hz: list[int] | None = None) -> tuple[Microphone, list[Block]]:
    microphone = Microphone()
    rates_hz = rates_hz or [16_000] * len(stamps_ns)
    chunks = [chunk(stamp_ns, rate_hz // 10, rate_hz) for stamp_ns, rate_hz in zip(stamps_ns, rates_hz, strict=True)]
    blocks = [b for i, c in enumerate(chunks) for b in microphone.feed(c, START_NS + (i + 1) * NS_PER_S // 10)]
    return microphone, [*blocks, *microphone.flush()]


TENTH = NS_PER_S // 10


@pytest.mark.parametrize("rate_hz", [16_000, 48_000])
def test_blocks_do_not_depend_on_the_first_message_that_is_heard(rate_hz: int) -> None:
    """A node that subscribes amid the stream cuts it as a bag does that begins earlier."""
    sound = np.random.default_rng(1).standard_normal(2 * rate_hz).astype(np.float32).reshape(20, -1, 1)

    def blocks(first: int) -> dict[int, bytes]:
        microphone = Microphone()
        chunks = [
            SoundChunk(samples=sound[place], rate_hz=rate_hz, stamp_ns=START_NS + place * TENTH)
            for place in range(first, 20)
        ]
        return {b.stamp_ns: b.samples.tobytes() for chunk in chunks for b in microphone.feed(chunk, START_NS)}

    whole, later = blocks(0), blocks(3)
    settled = {stamp_ns for stamp_ns in later if stamp_ns > START_NS + 4 * TENTH}
    assert settled <= whole.keys()
    assert all(later[stamp_ns] == whole[stamp_ns] for stamp_ns in settled)


HOUR = 3_600 * NS_PER_S


@pytest.mark.parametrize(
    ("stamps_ns", "fault"),
    [
        ([START_NS, START_NS + HOUR], "audio_stamp_jumps_ahead"),
        ([START_NS, START_NS - HOUR], "audio_stamp_jumps_back"),
        ([START_NS, START_NS + TENTH, START_NS], "audio_duplicated_or_late"),
        ([START_NS, START_NS + 3 * TENTH], "audio_gaps"),
    ],
)
def test_faults_of_stamps_are_counted(stamps_ns: list[int | None], fault: str) -> None:
    microphone, blocks = heard(stamps_ns)
    assert microphone.counts[fault] == 1
    assert blocks


def test_sound_without_stamps_is_timed_by_its_arrival_and_marked() -> None:
    microphone, blocks = heard([None, None])
    assert {block.timing for block in blocks} == {Timing.ARRIVAL}
    assert blocks[0].stamp_ns == START_NS
    assert microphone.counts["audio_unstamped"] == 2


def ns(**fields: object) -> SimpleNamespace:
    return SimpleNamespace(**fields)


STAMP = ns(sec=1_000, nanosec=5)
HALF = np.array([16384, -16384, 8192, -8192], np.int16)


@pytest.mark.parametrize(
    ("message", "rate_hz", "channels", "stamp_ns"),
    [
        (ns(data=HALF.tobytes()), 16_000, 1, None),
        (ns(header=ns(stamp=STAMP), audio=ns(data=HALF.tobytes())), 16_000, 1, START_NS + 5),
        (ns(layout=ns(dim=[]), data=HALF), 16_000, 1, None),
        (ns(layout=ns(dim=[]), data=array("h", HALF)), 16_000, 1, None),
        (ns(header=ns(stamp=STAMP), frequency=48_000, channel_map=[0, 2], data=HALF), 48_000, 2, START_NS + 5),
        (
            ns(timestamp=STAMP, data=HALF.tobytes(), format="pcm-s16", sample_rate=44_100, number_of_channels=2),
            44_100,
            2,
            START_NS + 5,
        ),
        (
            ns(
                header=ns(stamp=STAMP),
                audio=ns(
                    audio_data=ns(float32_data=[], int32_data=[], int16_data=HALF, int8_data=[], uint8_data=[]),
                    info=ns(format=8, channels=1, rate=22_050, chunk=4),
                ),
            ),
            22_050,
            1,
            START_NS + 5,
        ),
    ],
)
def test_each_audio_message_is_known_by_its_fields(
    message: SimpleNamespace, rate_hz: int, channels: int, stamp_ns: int | None
) -> None:
    sound = decode(message, STATED)
    assert (sound.rate_hz, sound.samples.shape[1], sound.stamp_ns) == (rate_hz, channels, stamp_ns)
    assert sound.samples.ravel().tolist() == [0.5, -0.5, 0.25, -0.25]


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (ns(data=(b"\xff\xfb\x90\x00" + bytes(413)) * 2), "audio_compressed"),
        (ns(data=b"ID3" + bytes(40)), "audio_compressed"),
        (ns(data=b""), "audio_empty"),
        (
            ns(timestamp=STAMP, data=b"12", format="mulaw?", sample_rate=8_000, number_of_channels=1),
            "audio_format_unknown",
        ),
        (ns(header=ns(stamp=STAMP), frequency=4_000, channel_map=[0], data=HALF), "audio_rate_refused"),
        (ns(text="hello"), "audio_type_unknown"),
        (ns(header=ns(stamp=STAMP), format="jpeg", data=HALF), "audio_type_unknown"),
        (ns(header=ns(stamp=STAMP), info=ns(width=2), data=np.zeros(4, np.int8)), "audio_type_unknown"),
        (ns(layout=ns(dim=[]), data=np.zeros(4, np.int32)), "audio_type_unknown"),
        (ns(data=np.zeros(4, np.float32)), "audio_type_unknown"),
    ],
)
def test_unusable_sound_is_named(message: SimpleNamespace, fault: str) -> None:
    with pytest.raises(SoundError) as caught:
        decode(message, STATED)
    assert caught.value.fault == fault


def arrivals(rate_hz: int, length_s: float = 12.0, pauses: bool = False) -> list[tuple[float, int]]:
    """The second at which each message comes, and its samples: ten a second, where nothing pauses."""
    at_s = [number / 10 for number in range(round(length_s * 10))]
    return [(second, rate_hz // 10) for second in at_s if not (pauses and second % 4 > 2)]


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
def test_a_wrong_sample_rate_is_detected(
    messages: list[tuple[float, int]], stated_hz: int, other_hz: int | None, is_stamped: bool
) -> None:
    check = SampleRateCheck()
    for at_s, count in messages:
        at_ns = NS_PER_S + s_to_ns(at_s)
        samples = np.zeros((count, 1), np.float32)
        chunk = SoundChunk(samples=samples, rate_hz=stated_hz, stamp_ns=at_ns if is_stamped else None)
        check.take(chunk, 0 if is_stamped else at_ns)
    assert check.other_hz == other_hz


def test_ears_state_the_measured_rate_with_its_remedy() -> None:
    health_log = HealthLog()
    ears = Ears(HearingConfig(), health_log, audio_topic="/audio")
    for number in range(80):
        chunk = SoundChunk(samples=np.zeros((4_800, 1), np.float32), rate_hz=16_000, stamp_ns=None)
        list(ears.take_sound(chunk, NS_PER_S + number * NS_PER_S // 10))
    (reason,) = health_log.reasons
    assert reason.startswith("/audio: about 48000 samples a second arrive")
    assert "set rate_hz of ears to 48000" in reason


RATE_HZ, LENGTH_S = 16_000, 60.0


def late_messages(
    numbers: np.random.Generator, stall_count: int, gap_count: int, rate: float, step: int
) -> tuple[list[tuple[SoundChunk, int]], np.ndarray]:
    """Messages without stamps and their arrivals; and the true time of each sample, which is worth its number.

    The computer stalls, sound is lost at other times, and the sound card's rate is off.
    """
    stalls = sorted((at_s, at_s + numbers.uniform(0.1, 2.3)) for at_s in numbers.uniform(-1, LENGTH_S - 5, stall_count))
    gaps = sorted((at_s, numbers.choice([0.1, 0.5, 2, 20])) for at_s in numbers.uniform(0, LENGTH_S - 10, gap_count))
    chunks: list[tuple[SoundChunk, int]] = []
    times: list[np.ndarray] = []
    now_s, newest_ns = 0.0, 0
    while now_s < LENGTH_S:
        while gaps and now_s > gaps[0][0]:
            at_s, lost_s = gaps.pop(0)
            if not any(from_s - 0.1 < at_s < until_s + 0.1 for from_s, until_s in stalls):
                now_s += lost_s
        times.append(now_s + np.arange(step) * rate / RATE_HZ)
        now_s += step * rate / RATE_HZ
        arrival_s = now_s + numbers.uniform(0, 0.02)
        for from_s, until_s in stalls:
            arrival_s = max(arrival_s, until_s) if from_s <= arrival_s else arrival_s
        newest_ns = max(newest_ns, START_NS + s_to_ns(arrival_s))
        samples = np.arange(1, step + 1, dtype=np.float32)[:, None] + step * len(chunks)
        chunks.append((SoundChunk(samples=samples, rate_hz=RATE_HZ, stamp_ns=None), newest_ns))
    return chunks, np.concatenate(times)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    stall_count=st.integers(0, 35),
    gap_count=st.integers(0, 3),
    rate=st.sampled_from([1 - 1e-4, 1, 1 + 1e-4]),
    step=st.sampled_from([320, 1_024, 1_600]),
)
def test_sound_without_stamps_keeps_its_time_through_stalls_gaps_and_drift(
    seed: int, stall_count: int, gap_count: int, rate: float, step: int
) -> None:
    chunks, true_s = late_messages(np.random.default_rng(seed), stall_count, gap_count, rate, step)
    microphone = Microphone()
    blocks = [block for chunk, arrival_ns in chunks for block in microphone.feed(chunk, arrival_ns)]
    blocks += microphone.flush()
    for block in blocks:
        for place in np.flatnonzero(block.samples)[:1]:
            stamp_s = (block.stamp_ns - START_NS) / NS_PER_S + place / RATE_HZ
            assert abs(stamp_s - true_s[int(block.samples[place]) - 1]) < 0.25
    assert sum(np.count_nonzero(block.samples) for block in blocks) == len(true_s)


def test_ears_in_two_threads_mark_a_stall_as_rough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Live: the words keep their time, and the marks state that timing is not to be trusted."""
    monkeypatch.setattr("norm_monitor.senses.speech.audio_front_end.Silero", LoudIsSpeech)
    health_log = HealthLog()
    queue = health_log.queue("speech", 8, OverflowPolicy.REFUSE)
    ears, records = Ears(CONFIG, health_log, Parrot(), "mic", queue), list[object]()
    for number in range(200):  # the computer stalls from second 4 to 6.2; the person speaks from second 5 to 8
        samples = np.full((1_600, 1), 0.5 if 50 <= number < 80 else 0.0, np.float32)
        at_s = max(number / 10 + 0.1, 6.2 if number >= 39 else 0)
        chunk = SoundChunk(samples=samples, rate_hz=RATE_HZ, stamp_ns=None)
        records += ears.take_sound(chunk, START_NS + s_to_ns(at_s))
        records += ears.transcribe(0)
    marks = [record for record in records if isinstance(record, Utterance) and not record.text]
    (words,) = [record for record in records if isinstance(record, Utterance) and record.text]
    assert abs(words.start_ns - START_NS - s_to_ns(5)) < NS_PER_S // 10
    rough = [mark.stamp_ns for mark in marks if mark.timing is Timing.ABSENT]
    assert START_NS + s_to_ns(4) < min(rough) < START_NS + s_to_ns(6.3)
    assert max(rough) < START_NS + s_to_ns(17)
