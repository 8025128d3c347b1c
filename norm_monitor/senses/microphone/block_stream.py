"""Turn sound chunks into a gapless stream of stamped 16 kHz mono blocks, and count every fault."""

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
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
# By arrival: what delay counts as none, how long the first messages wait for the least delay, and late ones for those
# behind them.
_ON_TIME_NS, _SETTLES_NS, _BELIEVED_NS = 200 * NS_PER_MS, 500 * NS_PER_MS, 3 * NS_PER_S
# Between two corrections of the sound card's rate, and the most that one adds: 500 ppm.
_PACED_NS, _PACE_NS = 10 * NS_PER_S, 5 * NS_PER_MS
# For so long after a longer delay times by arrival are uncertain, as what other topics bring came late too.
_STALL_NS, _UNCERTAIN_NS = 300 * NS_PER_MS, 10 * NS_PER_S
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
    """Turn chunks, in order of arrival, into complete blocks.

    Without stamps, the count of samples is the clock, and the least delay of arrival its origin. After a stall of the
    computer the sound comes late and all at once; after a gap it stays late. So late sound waits: until a message is in
    time again, or for 3 s, after which the least delay is a gap. Only what is in time leaves at once. Thus a block's
    time errs by 0.2 s at most, except where a longer stall let messages trickle through: then the stream starts anew.
    """

    def __init__(self, channel: int = 0, *, comes_ahead: bool = False) -> None:
        """`comes_ahead` is for sound without stamps that comes before it is played: then no delay is looked for."""
        self._channel, self._comes_ahead = channel, comes_ahead
        self._resampler: Resampler | None = None
        self._rate_hz = 0
        self._timing = Timing.SOURCE
        self._origin_ns = self._end_ns = self._blocks = 0
        self._received = 0
        self._late: list[tuple[Samples, int]] = []  # the sound that waits, with its arrivals
        self._arrived_ns = 0
        self._min_delay_ns = self._paced_ns = 0  # the least delay since the rate was corrected
        self._uncertain_until_ns: int | None = None
        self.counts: Counter[str] = Counter()

    @property
    def is_uncertain(self) -> bool:
        """Whether sound timed by arrival came so late that all times by arrival are uncertain."""
        until_ns = self._uncertain_until_ns
        return self._timing is Timing.ARRIVAL and until_ns is not None and self._arrived_ns < until_ns

    def feed(self, chunk: SoundChunk, arrival_ns: int) -> Iterator[Block]:
        """Return the blocks that a chunk completes; raise SoundError if it is unusable."""
        samples = self._select_channel(chunk)
        length_ns = len(samples) * NS_PER_S // chunk.rate_hz
        if chunk.stamp_ns is None:
            self.counts["audio_unstamped"] += 1
        timing = Timing.ARRIVAL if chunk.stamp_ns is None else Timing.SOURCE
        stamp_ns = arrival_ns - length_ns if chunk.stamp_ns is None else chunk.stamp_ns
        is_under_way = self._resampler is not None or self._late
        if is_under_way and (chunk.rate_hz, timing) != (self._rate_hz, self._timing):
            self.counts["audio_rate_changes" if timing is self._timing else "audio_timing_changes"] += 1
            yield from self.flush()
        if chunk.stamp_ns is None and not self._comes_ahead:
            yield from self._take_unstamped(samples, arrival_ns, chunk.rate_hz)
        else:
            yield from self._take_stamped(samples, stamp_ns, chunk.rate_hz, timing)

    def flush(self) -> Iterator[Block]:
        """Return the last blocks of the stream, padded; the next chunk starts a new stream."""
        if self._late:
            yield from self._pass_on(len(self._late), _BELIEVED_NS)
        yield from self._finish()

    def _finish(self) -> Iterator[Block]:
        if self._resampler:
            yield from self._make_blocks(self._resampler.flush())
        self._resampler = None

    def _take_unstamped(self, samples: Samples, arrival_ns: int, rate_hz: int) -> Iterator[Block]:
        """Time sound by its samples, once it is clear whether its arrival is late."""
        if arrival_ns < self._arrived_ns:  # the clock was set back
            yield from self.flush()
            self._uncertain_until_ns = None
        self._rate_hz, self._timing, self._arrived_ns = rate_hz, Timing.ARRIVAL, arrival_ns
        self._late.append((samples, arrival_ns))
        yield from self.advance(arrival_ns)

    def advance(self, now_ns: int) -> Iterator[Block]:
        """Return the blocks of sound that has waited for long enough."""
        if not self._late:
            return
        if self._resampler is None:
            if now_ns - self._late[0][1] < _SETTLES_NS:
                return
            self._begin(min(self._measure_delays_ns()), self._rate_hz, Timing.ARRIVAL)
            self._min_delay_ns, self._paced_ns = _ON_TIME_NS, now_ns
        delay_ns = self._measure_delays_ns()[-1]
        if delay_ns < -_ON_TIME_NS:  # the stream began too late: no message comes before its samples
            self.counts["audio_stamp_jumps_back"] += 1
            self._uncertain_until_ns = now_ns + _UNCERTAIN_NS
            yield from self._finish()
        elif delay_ns <= _ON_TIME_NS:
            yield from self._pass_on(len(self._late), _ON_TIME_NS)
            self._keep_pace(delay_ns, now_ns)
        else:
            count = sum(now_ns - arrival_ns >= _BELIEVED_NS for _, arrival_ns in self._late)
            yield from self._pass_on(count, _ON_TIME_NS)

    def _measure_delays_ns(self) -> list[int]:
        """Return by how much later than its samples say each waiting message came; from zero before any stream."""
        delays_ns, count = [], 0
        for samples, arrival_ns in self._late:
            count += len(samples)
            delays_ns.append(arrival_ns - count * NS_PER_S // self._rate_hz)
        end_ns = self._end_ns if self._resampler else 0
        return [delay_ns - end_ns for delay_ns in delays_ns]

    def _pass_on(self, count: int, min_gap_ns: int) -> Iterator[Block]:
        """Pass on the first waiting messages; the least delay from each on is a gap before it, if it is long enough."""
        if self._resampler is None:
            self._begin(min(self._measure_delays_ns()), self._rate_hz, Timing.ARRIVAL)
        delays_ns = self._measure_delays_ns()
        min_delays_ns = list(accumulate(reversed(delays_ns), min))[::-1]
        placed, self._late = self._late[:count], self._late[count:]
        gaps_ns = (
            0 if min_delay_ns <= _ON_TIME_NS else min_delay_ns for min_delay_ns in min_delays_ns
        )  # the rest of a delay is a stall
        if any(delay_ns - gap_ns > _STALL_NS for delay_ns, gap_ns in zip(delays_ns[:count], gaps_ns, strict=False)):
            self.counts["audio_stalls"] += 1
            self._uncertain_until_ns = self._arrived_ns + _UNCERTAIN_NS
        bridged_ns = 0
        for (samples, _), min_delay_ns in zip(placed, min_delays_ns, strict=False):
            if (gap_ns := min_delay_ns - bridged_ns) > min_gap_ns:
                yield from self._bridge(gap_ns, self._end_ns + gap_ns, self._rate_hz, Timing.ARRIVAL)
                bridged_ns = min_delay_ns
            yield from self._add(samples)

    def _keep_pace(self, delay_ns: int, arrival_ns: int) -> None:
        """Follow the least delay: at once where it falls, slowly where it rises, as other delays are above it."""
        if delay_ns < 0:
            self._shift_times(delay_ns)
        self._min_delay_ns = max(0, min(self._min_delay_ns, delay_ns))
        if arrival_ns - self._paced_ns >= _PACED_NS:
            self._shift_times(min(self._min_delay_ns, _PACE_NS))
            self._min_delay_ns, self._paced_ns = _ON_TIME_NS, arrival_ns

    def _shift_times(self, by_ns: int) -> None:
        self._origin_ns += by_ns
        self._end_ns += by_ns

    def _take_stamped(self, samples: Samples, stamp_ns: int, rate_hz: int, timing: Timing) -> Iterator[Block]:
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
        yield from self._add(samples)

    def _add(self, samples: Samples) -> Iterator[Block]:
        assert self._resampler
        self._count_samples(len(samples))
        yield from self._make_blocks(self._resampler.feed(samples))

    def _bridge(self, gap_ns: int, stamp_ns: int, rate_hz: int, timing: Timing) -> Iterator[Block]:
        if gap_ns <= _FILLED_NS:
            self.counts["audio_gaps"] += 1
            yield from self._add(np.zeros(gap_ns * rate_hz // NS_PER_S, np.float32))
            return
        self.counts["audio_stamp_jumps_ahead"] += 1
        yield from self._finish()
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
        self._count_samples(len(silence))
        self._resampler.feed(silence)

    def _count_samples(self, samples: int) -> None:
        self._received += samples
        self._end_ns = self._origin_ns + self._received * NS_PER_S // self._rate_hz

    def _make_blocks(self, blocks: list[Samples]) -> Iterator[Block]:
        for samples in blocks:
            stamp_ns = self._origin_ns + self._blocks * BLOCK_NS
            yield Block(stamp_ns=stamp_ns, samples=samples, timing=self._timing, starts_anew=self._blocks == 0)
            self._blocks += 1

    def _select_channel(self, chunk: SoundChunk) -> Samples:
        if self._channel >= (count := chunk.samples.shape[1]):
            named = f"one from 0 to {count - 1}, or {ALL_CHANNELS} for the mean of all" if count > 1 else "0"
            raise SoundError(
                "audio_channel_missing",
                f"channel {self._channel} is asked for, and the sound has {count}; name {named}",
            )
        mix = self._channel == ALL_CHANNELS
        samples = chunk.samples.mean(axis=1) if mix else chunk.samples[:, self._channel]
        peak = _measure_peak(samples)
        if not isfinite(peak):
            self.counts["audio_not_finite"] += 1
            samples = np.nan_to_num(samples, nan=0.0, posinf=1.0, neginf=-1.0)
            peak = _measure_peak(samples)
        if peak >= _CLIPPED and np.count_nonzero(np.abs(samples) >= _CLIPPED) > _CLIPPED_SHARE * len(samples):
            self.counts["audio_clipped"] += 1
        return np.ascontiguousarray(samples, np.float32)


def _measure_peak(samples: Samples) -> float:
    return float(np.abs(samples).max(initial=0.0))
