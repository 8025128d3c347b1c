"""Cut a stream of blocks into speech segments of bounded length, by stamps alone."""

from collections import deque
from collections.abc import Callable, Iterator
from enum import StrEnum

import numpy as np

from norm_core.records.record import record
from norm_core.records.speech import Timing
from norm_core.runtime.time import NS_PER_MS, s_to_ns
from norm_monitor.senses.microphone.block_stream import BLOCK_NS, Block
from norm_monitor.senses.microphone.pcm import Samples

# The probability of speech from which speech may start, and below which it may end.
_START_PROBABILITY = 0.5
_STOP_PROBABILITY = 0.35
# How long speech must last before its start is confirmed, and a pause before the end is confirmed.
_MIN_SPEECH_NS = 64 * NS_PER_MS
_MIN_PAUSE_NS = 400 * NS_PER_MS
# The margin of sound before and after speech.
_PADDING_NS = 192 * NS_PER_MS
# Longer speech is cut at its quietest point.
MAX_SPEECH_S = 15.0
# The blocks that are needed of the time before speech is confirmed.
_QUIET_BLOCKS = -(-(_PADDING_NS + _MIN_SPEECH_NS + _MIN_PAUSE_NS) // BLOCK_NS) + 1


class VoiceActivity:
    """Whether somebody speaks, by the probability of speech in each block. A change counts once it has lasted."""

    def __init__(self) -> None:
        self.is_speaking = False
        self.changing_since_ns: int | None = None  # the possible start or end of speech, while it is uncertain

    def feed(self, probability: float, start_ns: int, end_ns: int) -> int | None:
        """Return the stamp of the start or end of speech that a block confirms."""
        if self.is_speaking:
            is_changing = probability < _STOP_PROBABILITY
            min_length_ns = _MIN_PAUSE_NS
        else:
            is_changing = probability >= _START_PROBABILITY
            min_length_ns = _MIN_SPEECH_NS
        if not is_changing:
            self.changing_since_ns = None
            return None
        if self.changing_since_ns is None:
            self.changing_since_ns = start_ns
        if end_ns - self.changing_since_ns < min_length_ns:
            return None
        changed_ns, self.changing_since_ns = self.changing_since_ns, None
        self.is_speaking = not self.is_speaking
        return changed_ns

    def finish(self, end_ns: int) -> int | None:
        """End the stream at `end_ns`, and return the end of any speech in progress."""
        was_speaking = self.is_speaking
        pause_ns = self.changing_since_ns
        self.is_speaking = False
        self.changing_since_ns = None
        if not was_speaking:
            return None
        return end_ns if pause_ns is None else pause_ns


class SegmentStage(StrEnum):
    """How certain the end of a segment is."""

    PARTIAL = "partial"  # speech continues
    LIKELY = "likely"  # a short pause; the final segment has the same samples unless speech continues
    FINAL = "final"


@record
class AudioSegment:
    """Speech from `start_ns` to `end_ns`. Its samples have margins, and start at `sound_ns`."""

    start_ns: int
    end_ns: int
    sound_ns: int
    samples: Samples
    timing: Timing
    stage: SegmentStage

    @property
    def final(self) -> bool:
        """Whether the speech has ended, so that its text is final."""
        return self.stage is SegmentStage.FINAL


class Segmenter:
    """A cutter of blocks. It returns each speech segment at its end, and likely and partial segments before."""

    def __init__(
        self, partial_every_s: float, rate_block: Callable[[Samples], float], reset_rating: Callable[[], None]
    ) -> None:
        """Begin without blocks. `rate_block` returns the probability of speech; a new stream resets it."""
        self._voice = VoiceActivity()
        self._partial_every_ns = s_to_ns(partial_every_s)
        self._rate_block = rate_block
        self._reset_rating = reset_rating
        self._blocks: deque[tuple[Block, float]] = deque()
        self.onset_ns: int | None = None  # of confirmed speech that has not ended
        self._partial_due_ns: int | None = None
        self._likely_end_ns: int | None = None

    @property
    def speech_since_ns(self) -> int | None:
        """The start, or possible start, of speech that has not ended; None without speech."""
        return self._voice.changing_since_ns if self.onset_ns is None else self.onset_ns

    def feed(self, block: Block) -> Iterator[AudioSegment]:
        """Return the segments that a block completes or extends."""
        if block.starts_anew:
            yield from self.flush()
        probability = self._rate_block(block.samples)
        self._blocks.append((block, probability))
        end_ns = block.stamp_ns + BLOCK_NS
        changed_ns = self._voice.feed(probability, block.stamp_ns, end_ns)
        if changed_ns is not None:
            yield from self._change(changed_ns)
        if self.onset_ns is None:
            while len(self._blocks) > _QUIET_BLOCKS:
                self._blocks.popleft()
        elif end_ns - self.onset_ns >= s_to_ns(MAX_SPEECH_S):
            yield self._cut()
        elif (
            self._partial_due_ns is not None
            and self._voice.changing_since_ns is None
            and end_ns >= self._partial_due_ns
        ):
            self._partial_due_ns = end_ns + self._partial_every_ns
            yield self._make_segment(self.onset_ns, end_ns, SegmentStage.PARTIAL)
        else:
            yield from self._find_likely_segment(self.onset_ns, end_ns)

    def flush(self) -> Iterator[AudioSegment]:
        """End the stream and any speech in progress."""
        if self._blocks:
            offset_ns = self._voice.finish(self._blocks[-1][0].stamp_ns + BLOCK_NS)
            if offset_ns is not None:
                yield from self._change(offset_ns)
        self._blocks.clear()
        self._reset_rating()

    def _change(self, stamp_ns: int) -> Iterator[AudioSegment]:
        """Begin speech at a stamp, or end it there."""
        if self._voice.is_speaking:
            self._begin(stamp_ns)
            return
        onset_ns, self.onset_ns = self.onset_ns, None
        if onset_ns is not None and stamp_ns > onset_ns:
            yield self._make_segment(onset_ns, stamp_ns, SegmentStage.FINAL)

    def _find_likely_segment(self, onset_ns: int, now_ns: int) -> Iterator[AudioSegment]:
        """Yield the likely segment as soon as its sound is complete, in case the pause lasts."""
        pause_ns = self._voice.changing_since_ns
        if pause_ns is None or pause_ns in (onset_ns, self._likely_end_ns) or now_ns < pause_ns + _PADDING_NS:
            return
        self._likely_end_ns = pause_ns
        yield self._make_segment(onset_ns, pause_ns, SegmentStage.LIKELY)

    def _begin(self, onset_ns: int) -> None:
        self.onset_ns = onset_ns
        self._partial_due_ns = onset_ns + self._partial_every_ns if self._partial_every_ns else None

    def _cut(self) -> AudioSegment:
        """End a segment of maximum length at the quietest block of its last third, and continue from there."""
        assert self.onset_ns is not None
        earliest_ns = self.onset_ns + s_to_ns(MAX_SPEECH_S * 2 / 3)
        candidates = [(rating, block.stamp_ns) for block, rating in self._blocks if block.stamp_ns >= earliest_ns]
        _, cut_ns = min(candidates)
        segment = self._make_segment(self.onset_ns, cut_ns, SegmentStage.FINAL)
        self._begin(cut_ns)
        while self._blocks[0][0].stamp_ns < cut_ns - _PADDING_NS:
            self._blocks.popleft()
        return segment

    def _make_segment(self, start_ns: int, end_ns: int, stage: SegmentStage) -> AudioSegment:
        first_ns = start_ns - _PADDING_NS - BLOCK_NS
        last_ns = end_ns + _PADDING_NS
        blocks = [block for block, _ in self._blocks if first_ns < block.stamp_ns < last_ns]
        return AudioSegment(
            start_ns=start_ns,
            end_ns=end_ns,
            sound_ns=blocks[0].stamp_ns,
            samples=np.concatenate([block.samples for block in blocks]),
            timing=blocks[0].timing,
            stage=stage,
        )
