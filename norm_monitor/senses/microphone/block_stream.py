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
# The samples of a block: the input size of the voice activity model.
BLOCK = 512
BLOCK_NS = BLOCK * NS_PER_S // RATE_HZ

# The channel number that stands for the mean of all channels.
ALL_CHANNELS = -1

# The largest difference between a stamp and the end of the samples before it.
_MAX_JITTER_NS = {Timing.SOURCE: 60 * NS_PER_MS, Timing.ARRIVAL: 500 * NS_PER_MS}
# For sound without stamps: a message with at most this delay is in time.
_MAX_DELAY_NS = 200 * NS_PER_MS
# How long the first messages wait, so that the least delay among them is the origin of time.
_SETTLING_NS = 500 * NS_PER_MS
# How long late messages wait for one in time, which would show that the computer stalled.
_MAX_WAIT_NS = 3 * NS_PER_S
# The time between two corrections of the sound card's rate, and the largest correction: 500 ppm.
_CORRECTION_INTERVAL_NS = 10 * NS_PER_S
_MAX_CORRECTION_NS = 5 * NS_PER_MS
# A longer delay is a stall. After one, times by arrival are uncertain for a while, because other topics are late too.
_STALL_THRESHOLD_NS = 300 * NS_PER_MS
_UNCERTAIN_NS = 10 * NS_PER_S
# A shorter gap is filled with silence; a longer one starts a new stream.
_MAX_FILLED_NS = 1 * NS_PER_S
# A message is clipped if more than this share of its samples have at least this size.
_CLIPPED_SIZE = 0.999
_MAX_CLIPPED_RATIO = 0.01


@record
class Block:
    """BLOCK samples. `starts_anew` states that they do not continue the block before."""

    stamp_ns: int
    samples: Samples
    timing: Timing
    starts_anew: bool


class Microphone:
    """A converter of chunks, in order of arrival, into complete blocks.

    Without stamps, the count of samples is the clock, and the least delay of arrival is its origin. After a stall of
    the computer, the sound comes late and all at once; after a gap, it stays late. So late sound waits until a message
    is in time again, or for 3 s, after which the least delay is a gap. Sound in time does not wait. The time of a block
    thus errs by 0.2 s at most. If messages trickle through a longer stall, the stream starts anew.
    """

    def __init__(self, channel: int = 0, *, comes_ahead: bool = False) -> None:
        """Prepare for a stream. `comes_ahead` is for sound without stamps that comes before it is played."""
        self._channel = channel
        self._comes_ahead = comes_ahead
        self._resampler: Resampler | None = None
        self._rate_hz = 0
        self._timing = Timing.SOURCE
        self._origin_ns = 0
        self._end_ns = 0
        self._block_count = 0
        self._sample_count = 0
        self._waiting: list[tuple[Samples, int]] = []  # sound without stamps, with its arrivals
        self._arrived_ns = 0
        self._min_delay_ns = 0  # since the last correction of the rate
        self._corrected_ns = 0
        self._uncertain_until_ns: int | None = None
        self.counts: Counter[str] = Counter()

    @property
    def is_uncertain(self) -> bool:
        """Whether sound timed by arrival came so late that all times by arrival are uncertain."""
        until_ns = self._uncertain_until_ns
        return self._timing is Timing.ARRIVAL and until_ns is not None and self._arrived_ns < until_ns

    def feed(self, chunk: SoundChunk, arrival_ns: int) -> Iterator[Block]:
        """Yield the blocks that a chunk completes. Raises SoundError if it is unusable."""
        samples = self._select_channel(chunk)
        length_ns = len(samples) * NS_PER_S // chunk.rate_hz
        if chunk.stamp_ns is None:
            self.counts["audio_unstamped"] += 1
        timing = Timing.ARRIVAL if chunk.stamp_ns is None else Timing.SOURCE
        stamp_ns = arrival_ns - length_ns if chunk.stamp_ns is None else chunk.stamp_ns
        has_begun = self._resampler is not None or self._waiting
        if has_begun and (chunk.rate_hz, timing) != (self._rate_hz, self._timing):
            self.counts["audio_rate_changes" if timing is self._timing else "audio_timing_changes"] += 1
            yield from self.flush()
        if chunk.stamp_ns is None and not self._comes_ahead:
            yield from self._take_unstamped(samples, arrival_ns, chunk.rate_hz)
        else:
            yield from self._take_stamped(samples, stamp_ns, chunk.rate_hz, timing)

    def flush(self) -> Iterator[Block]:
        """Yield the last blocks of the stream, padded. The next chunk starts a new stream."""
        if self._waiting:
            yield from self._pass_on(len(self._waiting), _MAX_WAIT_NS)
        yield from self._finish()

    def _finish(self) -> Iterator[Block]:
        """End the stream, and yield its last blocks."""
        if self._resampler:
            yield from self._make_blocks(self._resampler.flush())
        self._resampler = None

    def _take_unstamped(self, samples: Samples, arrival_ns: int, rate_hz: int) -> Iterator[Block]:
        """Time sound by its samples, once it is clear whether it came late."""
        if arrival_ns < self._arrived_ns:  # the clock was set back
            yield from self.flush()
            self._uncertain_until_ns = None
        self._rate_hz = rate_hz
        self._timing = Timing.ARRIVAL
        self._arrived_ns = arrival_ns
        self._waiting.append((samples, arrival_ns))
        yield from self.advance(arrival_ns)

    def advance(self, now_ns: int) -> Iterator[Block]:
        """Yield the blocks of sound that has waited long enough."""
        if not self._waiting:
            return
        if self._resampler is None:
            if now_ns - self._waiting[0][1] < _SETTLING_NS:
                return
            self._begin(min(self._measure_delays_ns()), self._rate_hz, Timing.ARRIVAL)
            self._min_delay_ns = _MAX_DELAY_NS
            self._corrected_ns = now_ns
        delay_ns = self._measure_delays_ns()[-1]
        if delay_ns < -_MAX_DELAY_NS:  # the stream began too late: no message comes before its samples
            self.counts["audio_stamp_jumps_back"] += 1
            self._uncertain_until_ns = now_ns + _UNCERTAIN_NS
            yield from self._finish()
        elif delay_ns <= _MAX_DELAY_NS:
            yield from self._pass_on(len(self._waiting), _MAX_DELAY_NS)
            self._keep_pace(delay_ns, now_ns)
        else:
            count = sum(now_ns - arrival_ns >= _MAX_WAIT_NS for _, arrival_ns in self._waiting)
            yield from self._pass_on(count, _MAX_DELAY_NS)

    def _measure_delays_ns(self) -> list[int]:
        """Return how much later each waiting message came than the count of samples says."""
        delays_ns = []
        count = 0
        for samples, arrival_ns in self._waiting:
            count += len(samples)
            delays_ns.append(arrival_ns - count * NS_PER_S // self._rate_hz)
        end_ns = self._end_ns if self._resampler else 0
        return [delay_ns - end_ns for delay_ns in delays_ns]

    def _pass_on(self, count: int, min_gap_ns: int) -> Iterator[Block]:
        """Yield the blocks of the first waiting messages. If all later messages are late, the sound has a gap."""
        if self._resampler is None:
            self._begin(min(self._measure_delays_ns()), self._rate_hz, Timing.ARRIVAL)
        delays_ns = self._measure_delays_ns()
        min_delays_ns = list(accumulate(reversed(delays_ns), min))[::-1]
        passed, self._waiting = self._waiting[:count], self._waiting[count:]
        # What a delay exceeds the gap by is a stall.
        gaps_ns = (0 if min_delay_ns <= _MAX_DELAY_NS else min_delay_ns for min_delay_ns in min_delays_ns)
        if any(
            delay_ns - gap_ns > _STALL_THRESHOLD_NS
            for delay_ns, gap_ns in zip(delays_ns[:count], gaps_ns, strict=False)
        ):
            self.counts["audio_stalls"] += 1
            self._uncertain_until_ns = self._arrived_ns + _UNCERTAIN_NS
        bridged_ns = 0
        for (samples, _), min_delay_ns in zip(passed, min_delays_ns, strict=False):
            if (gap_ns := min_delay_ns - bridged_ns) > min_gap_ns:
                yield from self._bridge(gap_ns, self._end_ns + gap_ns, self._rate_hz, Timing.ARRIVAL)
                bridged_ns = min_delay_ns
            yield from self._add(samples)

    def _keep_pace(self, delay_ns: int, arrival_ns: int) -> None:
        """Follow the least delay: at once if it falls, and slowly if it rises, because most delays are above it."""
        if delay_ns < 0:
            self._shift_times(delay_ns)
        self._min_delay_ns = max(0, min(self._min_delay_ns, delay_ns))
        if arrival_ns - self._corrected_ns >= _CORRECTION_INTERVAL_NS:
            self._shift_times(min(self._min_delay_ns, _MAX_CORRECTION_NS))
            self._min_delay_ns = _MAX_DELAY_NS
            self._corrected_ns = arrival_ns

    def _shift_times(self, by_ns: int) -> None:
        """Correct the times of the stream."""
        self._origin_ns += by_ns
        self._end_ns += by_ns

    def _take_stamped(self, samples: Samples, stamp_ns: int, rate_hz: int, timing: Timing) -> Iterator[Block]:
        """Join sound to the stream at its stamp."""
        if self._resampler is None:
            self._begin(stamp_ns, rate_hz, timing)
        else:
            ahead_ns = stamp_ns - self._end_ns
            if ahead_ns > _MAX_JITTER_NS[timing]:
                yield from self._bridge(ahead_ns, stamp_ns, rate_hz, timing)
            elif ahead_ns < -_MAX_JITTER_NS[timing] and timing is Timing.SOURCE:
                if ahead_ns < -_MAX_FILLED_NS:
                    self.counts["audio_stamp_jumps_back"] += 1
                    yield from self.flush()
                    self._begin(stamp_ns, rate_hz, timing)
                else:
                    self.counts["audio_duplicated_or_late"] += 1
                    samples = samples[-ahead_ns * rate_hz // NS_PER_S :]
        yield from self._add(samples)

    def _add(self, samples: Samples) -> Iterator[Block]:
        """Yield the blocks that samples of the stream complete."""
        assert self._resampler
        self._count_samples(len(samples))
        yield from self._make_blocks(self._resampler.feed(samples))

    def _bridge(self, gap_ns: int, stamp_ns: int, rate_hz: int, timing: Timing) -> Iterator[Block]:
        """Fill a short gap with silence, or begin a new stream after a long one."""
        if gap_ns <= _MAX_FILLED_NS:
            self.counts["audio_gaps"] += 1
            yield from self._add(np.zeros(gap_ns * rate_hz // NS_PER_S, np.float32))
            return
        self.counts["audio_stamp_jumps_ahead"] += 1
        yield from self._finish()
        self._begin(stamp_ns, rate_hz, timing)

    def _begin(self, stamp_ns: int, rate_hz: int, timing: Timing) -> None:
        """Begin a stream on the grid of multiples of BLOCK_NS, so that blocks do not depend on its first message."""
        self._resampler = Resampler(rate_hz, RATE_HZ, BLOCK)
        self._rate_hz = rate_hz
        self._timing = timing
        early_ns = stamp_ns % BLOCK_NS
        self._origin_ns = stamp_ns - early_ns
        self._sample_count = 0
        self._block_count = 0
        max_silence = BLOCK * rate_hz // RATE_HZ - 1  # less than a block
        silence = np.zeros(min(round(early_ns * rate_hz / NS_PER_S), max_silence), np.float32)
        self._count_samples(len(silence))
        self._resampler.feed(silence)

    def _count_samples(self, count: int) -> None:
        """Move the end of the stream on by some samples."""
        self._sample_count += count
        self._end_ns = self._origin_ns + self._sample_count * NS_PER_S // self._rate_hz

    def _make_blocks(self, blocks: list[Samples]) -> Iterator[Block]:
        """Yield resampled blocks with their stamps."""
        for samples in blocks:
            stamp_ns = self._origin_ns + self._block_count * BLOCK_NS
            yield Block(stamp_ns=stamp_ns, samples=samples, timing=self._timing, starts_anew=self._block_count == 0)
            self._block_count += 1

    def _select_channel(self, chunk: SoundChunk) -> Samples:
        """Return the samples of the selected channel, and count faults. Raises SoundError if it does not exist."""
        count = chunk.samples.shape[1]
        if self._channel >= count:
            remedy = f"name one from 0 to {count - 1}, or {ALL_CHANNELS} for the mean of all" if count > 1 else "name 0"
            raise SoundError(
                "audio_channel_missing", f"channel {self._channel} does not exist: the sound has {count}; {remedy}"
            )
        samples = chunk.samples.mean(axis=1) if self._channel == ALL_CHANNELS else chunk.samples[:, self._channel]
        peak = _measure_peak(samples)
        if not isfinite(peak):
            self.counts["audio_not_finite"] += 1
            samples = np.nan_to_num(samples, nan=0.0, posinf=1.0, neginf=-1.0)
            peak = _measure_peak(samples)
        if peak >= _CLIPPED_SIZE and np.count_nonzero(np.abs(samples) >= _CLIPPED_SIZE) > _MAX_CLIPPED_RATIO * len(
            samples
        ):
            self.counts["audio_clipped"] += 1
        return np.ascontiguousarray(samples, np.float32)


def _measure_peak(samples: Samples) -> float:
    return float(np.abs(samples).max(initial=0.0))
