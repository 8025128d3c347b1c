"""Turn sound chunks into a gapless stream of stamped 16 kHz mono blocks, and count every fault."""

from collections import Counter
from collections.abc import Iterator
from math import isfinite

import numpy as np

from norm_core.records.record import record
from norm_core.records.speech import Timing
from norm_core.runtime.time import NS_PER_MS, NS_PER_S
from norm_monitor.senses.microphone.audio_message import SoundChunk
from norm_monitor.senses.microphone.pcm import Resampler, Samples, SoundError

RATE_HZ = 16_000
BLOCK = 512  # samples: the input size of the voice activity model
BLOCK_NS = BLOCK * NS_PER_S // RATE_HZ

ALL_CHANNELS = -1  # the mean of all channels

# The largest difference between a stamp and the end of the samples before it.
_JITTER_NS = {Timing.SOURCE: 60 * NS_PER_MS, Timing.ARRIVAL: 500 * NS_PER_MS}
# A shorter gap is filled with silence; a longer one starts a new stream.
_FILLED_NS = 1 * NS_PER_S
_CLIPPED, _CLIPPED_SHARE = 0.999, 0.01


@record
class Block:
    """BLOCK samples; `starts_anew` if they do not continue the block before."""

    stamp_ns: int
    samples: Samples
    timing: Timing
    starts_anew: bool


class Microphone:
    """Turn chunks, in order of arrival, into complete blocks."""

    def __init__(self, channel: int = 0) -> None:
        self._channel = channel
        self._resampler: Resampler | None = None
        self._rate_hz = 0
        self._timing = Timing.SOURCE
        self._origin_ns = self._end_ns = self._blocks = 0
        self._received = 0
        self.counts: Counter[str] = Counter()

    def feed(self, chunk: SoundChunk, arrival_ns: int) -> Iterator[Block]:
        """Return the blocks that a chunk completes; raise SoundError if it is unusable."""
        samples = self._one_channel(chunk)
        length_ns = len(samples) * NS_PER_S // chunk.rate_hz
        if chunk.stamp_ns is None:
            self.counts["audio_unstamped"] += 1
        timing = Timing.ARRIVAL if chunk.stamp_ns is None else Timing.SOURCE
        stamp_ns = arrival_ns - length_ns if chunk.stamp_ns is None else chunk.stamp_ns
        if self._resampler and (chunk.rate_hz, timing) != (self._rate_hz, self._timing):
            self.counts["audio_rate_changes" if timing is self._timing else "audio_timing_changes"] += 1
            yield from self.flush()
        yield from self._join_on(samples, stamp_ns, chunk.rate_hz, timing)

    def flush(self) -> Iterator[Block]:
        """Return the last blocks of the stream, padded; the next chunk starts a new stream."""
        if self._resampler:
            yield from self._blocks_of(self._resampler.flush())
        self._resampler = None

    def _join_on(self, samples: Samples, stamp_ns: int, rate_hz: int, timing: Timing) -> Iterator[Block]:
        if self._resampler is None:
            self._begin(stamp_ns, rate_hz, timing)
        else:
            ahead_ns = stamp_ns - self._end_ns
            if ahead_ns > _JITTER_NS[timing]:
                yield from self._bridge(ahead_ns, stamp_ns, rate_hz, timing)
            elif ahead_ns < -_JITTER_NS[timing] and timing is Timing.SOURCE:
                if ahead_ns < -_FILLED_NS:
                    self.counts["audio_stamp_jumps_back"] += 1
                    yield from self.flush()
                    self._begin(stamp_ns, rate_hz, timing)
                else:
                    self.counts["audio_duplicated_or_late"] += 1
                    samples = samples[-ahead_ns * rate_hz // NS_PER_S :]
        assert self._resampler
        self._take(len(samples))
        yield from self._blocks_of(self._resampler.feed(samples))

    def _bridge(self, gap_ns: int, stamp_ns: int, rate_hz: int, timing: Timing) -> Iterator[Block]:
        assert self._resampler
        if gap_ns <= _FILLED_NS:
            self.counts["audio_gaps"] += 1
            silence = np.zeros(gap_ns * rate_hz // NS_PER_S, np.float32)
            self._take(len(silence))
            yield from self._blocks_of(self._resampler.feed(silence))
            return
        self.counts["audio_stamp_jumps_ahead"] += 1
        yield from self.flush()
        self._begin(stamp_ns, rate_hz, timing)

    def _begin(self, stamp_ns: int, rate_hz: int, timing: Timing) -> None:
        """Begin a stream on the grid of multiples of BLOCK_NS, so that blocks do not depend on its first message."""
        self._resampler = Resampler(rate_hz, RATE_HZ, BLOCK)
        self._rate_hz, self._timing = rate_hz, timing
        early_ns = stamp_ns % BLOCK_NS
        self._origin_ns = stamp_ns - early_ns
        self._received = self._blocks = 0
        less_than_block = BLOCK * rate_hz // RATE_HZ - 1
        silence = np.zeros(min(round(early_ns * rate_hz / NS_PER_S), less_than_block), np.float32)
        self._take(len(silence))
        self._resampler.feed(silence)

    def _take(self, samples: int) -> None:
        self._received += samples
        self._end_ns = self._origin_ns + self._received * NS_PER_S // self._rate_hz

    def _blocks_of(self, made: list[Samples]) -> Iterator[Block]:
        for samples in made:
            stamp_ns = self._origin_ns + self._blocks * BLOCK_NS
            yield Block(stamp_ns=stamp_ns, samples=samples, timing=self._timing, starts_anew=self._blocks == 0)
            self._blocks += 1

    def _one_channel(self, chunk: SoundChunk) -> Samples:
        if self._channel >= (count := chunk.samples.shape[1]):
            named = f"one from 0 to {count - 1}, or {ALL_CHANNELS} for the mean of all" if count > 1 else "0"
            raise SoundError(
                "audio_channel_missing",
                f"channel {self._channel} is asked for, and the sound has {count}; name {named}",
            )
        mix = self._channel == ALL_CHANNELS
        samples = chunk.samples.mean(axis=1) if mix else chunk.samples[:, self._channel]
        peak = _peak(samples)
        if not isfinite(peak):
            self.counts["audio_not_finite"] += 1
            samples = np.nan_to_num(samples, nan=0.0, posinf=1.0, neginf=-1.0)
            peak = _peak(samples)
        if peak >= _CLIPPED and np.count_nonzero(np.abs(samples) >= _CLIPPED) > _CLIPPED_SHARE * len(samples):
            self.counts["audio_clipped"] += 1
        return np.ascontiguousarray(samples, np.float32)


def _peak(samples: Samples) -> float:
    return float(np.abs(samples).max(initial=0.0))
