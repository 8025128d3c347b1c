"""Sound that changes its rate or is too loud goes on being heard."""

from pathlib import Path

import numpy as np

from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.microphone.audio_message import SoundChunk, read_sound_file
from norm_monitor.senses.microphone.block_stream import Microphone
from norm_monitor.senses.microphone.pcm import Resampler
from norm_monitor.senses.speech.audio_front_end import AudioFrontEnd
from tests.norm_monitor.senses.speech_path import CONFIG, START_NS, segments, utterances
from tests.norm_monitor.senses.test_parity import Parrot

HERE = Path(__file__).parent
RATE_HZ = 16_000


def second(index: int, samples: np.ndarray) -> SoundChunk:
    return SoundChunk(samples=samples, rate_hz=RATE_HZ, stamp_ns=START_NS + index * NS_PER_S)


def test_a_rate_that_changes_between_words_loses_none() -> None:
    """Two of the generated scenes, the second at another rate."""
    whole = np.concatenate([chunk.samples[:, 0] for chunk in read_sound_file(HERE / "mixtures.flac")])[: 12 * RATE_HZ]
    resampler = Resampler(RATE_HZ, 48_000, 512)
    faster = np.concatenate([*resampler.feed(whole[6 * RATE_HZ :]), *resampler.flush()])[: 6 * 48_000]
    chunks = [second(i, whole[i * RATE_HZ : (i + 1) * RATE_HZ, None]) for i in range(6)]
    chunks += [
        SoundChunk(
            samples=faster[i * 48_000 : (i + 1) * 48_000, None],
            rate_hz=48_000,
            stamp_ns=START_NS + (6 + i) * NS_PER_S,
        )
        for i in range(6)
    ]
    front_end = AudioFrontEnd(CONFIG)
    changed = [p.segment for p in segments(chunks, front_end=front_end) if p.segment.final]
    same = [p.segment for p in segments(second(i, whole[i * RATE_HZ : (i + 1) * RATE_HZ, None]) for i in range(12))]
    same = [segment for segment in same if segment.final]
    assert front_end.counts["audio_rate_changes"] == 1
    assert len(changed) == len(same) == 2
    assert all(abs(a.start_ns - b.start_ns) < NS_PER_S // 10 for a, b in zip(changed, same, strict=True))
    assert all(abs(a.end_ns - b.end_ns) < NS_PER_S // 10 for a, b in zip(changed, same, strict=True))


def test_clipped_sound_is_counted_and_still_heard() -> None:
    whole = np.concatenate([chunk.samples for chunk in read_sound_file(HERE / "mixtures.flac")])[
        6 * RATE_HZ : 12 * RATE_HZ
    ]
    shouted = np.clip(whole * 20, -1, 1)
    microphone = Microphone()
    for index in range(6):
        list(microphone.feed(second(index, shouted[index * RATE_HZ : (index + 1) * RATE_HZ]), START_NS))
    assert microphone.counts["audio_clipped"] >= 2
    chunks = [second(index, shouted[index * RATE_HZ : (index + 1) * RATE_HZ]) for index in range(6)]
    assert len(utterances(chunks, Parrot())) == 1
