"""Cut a stream of blocks into speech segments of bounded length, by stamps alone."""

from collections import deque
from collections.abc import Callable, Iterator
from enum import StrEnum

import numpy as np
from pydantic import Field

from norm_core.records.record import record
from norm_core.records.speech import Timing
from norm_core.runtime.config import Config
from norm_core.runtime.time import NS_PER_MS, s_to_ns
from norm_monitor.senses.microphone.block_stream import BLOCK_NS, Block
from norm_monitor.senses.microphone.pcm import Samples


class VoiceActivityConfig(Config):
    """When speech starts and ends."""

    start_probability: float = Field(default=0.5, gt=0, lt=1, description="probability from which speech may start")
    stop_probability: float = Field(default=0.35, gt=0, lt=1, description="probability below which speech may end")
    start_ms: int = Field(
        default=64, ge=0, le=2000, description="how long speech must last before its start is confirmed"
    )
    stop_ms: int = Field(
        default=400, ge=32, le=5000, description="how long a pause must last before the end is confirmed"
    )


class VoiceActivity:
    """Whether somebody speaks, by the probability of speech in each block; a change counts once it has lasted."""

    def __init__(self, config: VoiceActivityConfig) -> None:
        """Raises ValueError if the stop probability is above the start probability."""
        if config.stop_probability > config.start_probability:
            raise ValueError("speech cannot end above the probability at which it begins")
        self._config = config
        self.is_speaking = False
        self.changing_since_ns: int | None = None  # the possible start or end of speech, while it is uncertain

    def feed(self, probability: float, start_ns: int, end_ns: int) -> int | None:
        """Return the stamp of the start or end of speech that a block confirms."""
        config = self._config
        if self.is_speaking:
            is_changing, lasting_ms = probability < config.stop_probability, config.stop_ms
        else:
            is_changing, lasting_ms = probability >= config.start_probability, config.start_ms
        if not is_changing:
            self.changing_since_ns = None
            return None
        if self.changing_since_ns is None:
            self.changing_since_ns = start_ns
        if end_ns - self.changing_since_ns < lasting_ms * NS_PER_MS:
            return None
        changed_ns, self.changing_since_ns = self.changing_since_ns, None
        self.is_speaking = not self.is_speaking
        return changed_ns

    def finish(self, end_ns: int) -> int | None:
        """End the stream at `end_ns`, and return the end of any speech in progress."""
        was_speaking, quiet_ns = self.is_speaking, self.changing_since_ns
        self.is_speaking, self.changing_since_ns = False, None
        if not was_speaking:
            return None
        return end_ns if quiet_ns is None else quiet_ns


class SegmentConfig(Config):
    """How speech is cut into segments."""

    padding_ms: int = Field(default=192, ge=0, le=1000, description="margin of sound before and after speech")
    longest_s: float = Field(default=15.0, ge=2, le=28, description="longer speech is cut at its quietest point")
    partial_every_s: float = Field(
        default=2.0, ge=0, le=30, description="interval of partial results during speech; 0 for none"
    )


class SegmentStage(StrEnum):
    """How certain the end of a segment is."""

    PARTIAL = "partial"  # speech continues
    LIKELY = "likely"  # a short pause; the final segment has the same samples unless speech continues
    FINAL = "final"


@record
class AudioSegment:
    """Speech from `start_ns` to `end_ns`, with margins: the samples start at `sound_ns`."""

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
    """Take blocks; return each speech segment at its end, and likely and partial segments before."""

    def __init__(
        self,
        voice: VoiceActivityConfig,
        config: SegmentConfig,
        probability_of: Callable[[Samples], float],
        forget: Callable[[], None],
    ) -> None:
        self._voice = VoiceActivity(voice)
        self._config, self._probability_of, self._forget = config, probability_of, forget
        self._padding_ns = config.padding_ms * NS_PER_MS
        quiet_ns = self._padding_ns + (voice.start_ms + voice.stop_ms) * NS_PER_MS
        self._quiet_blocks = -(-quiet_ns // BLOCK_NS) + 1
        self._blocks: deque[tuple[Block, float]] = deque()
        self.onset_ns: int | None = None  # of confirmed speech that has not ended
        self._partial_due_ns: int | None = None
        self._likely_end_ns: int | None = None

    @property
    def speech_since_ns(self) -> int | None:
        """The start, or possible start, of speech that has not ended; None without it."""
        return self._voice.changing_since_ns if self.onset_ns is None else self.onset_ns

    def feed(self, block: Block) -> Iterator[AudioSegment]:
        """Return the segments that a block completes or extends."""
        if block.starts_anew:
            yield from self.flush()
        probability = self._probability_of(block.samples)
        self._blocks.append((block, probability))
        end_ns = block.stamp_ns + BLOCK_NS
        changed_ns = self._voice.feed(probability, block.stamp_ns, end_ns)
        if changed_ns is not None:
            yield from self._change(changed_ns)
        if self.onset_ns is None:
            while len(self._blocks) > self._quiet_blocks:
                self._blocks.popleft()
        elif end_ns - self.onset_ns >= s_to_ns(self._config.longest_s):
            yield self._cut()
        elif (
            self._partial_due_ns is not None
            and self._voice.changing_since_ns is None
            and end_ns >= self._partial_due_ns
        ):
            self._partial_due_ns = end_ns + s_to_ns(self._config.partial_every_s)
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
        self._forget()

    def _change(self, stamp_ns: int) -> Iterator[AudioSegment]:
        """Begin speech at a stamp, or end it there."""
        if self._voice.is_speaking:
            self._begin(stamp_ns)
            return
        onset_ns, self.onset_ns = self.onset_ns, None
        if onset_ns is not None and stamp_ns > onset_ns:
            yield self._make_segment(onset_ns, stamp_ns, SegmentStage.FINAL)

    def _find_likely_segment(self, onset_ns: int, now_ns: int) -> Iterator[AudioSegment]:
        """Return the likely segment as soon as all its sound is there, in case the pause lasts."""
        quiet_ns = self._voice.changing_since_ns
        if quiet_ns is None or quiet_ns in (onset_ns, self._likely_end_ns) or now_ns < quiet_ns + self._padding_ns:
            return
        self._likely_end_ns = quiet_ns
        yield self._make_segment(onset_ns, quiet_ns, SegmentStage.LIKELY)

    def _begin(self, onset_ns: int) -> None:
        self.onset_ns = onset_ns
        every_ns = s_to_ns(self._config.partial_every_s)
        self._partial_due_ns = onset_ns + every_ns if every_ns else None

    def _cut(self) -> AudioSegment:
        """End a segment of maximum length at the quietest block of its last third, and continue from there."""
        assert self.onset_ns is not None
        earliest_ns = self.onset_ns + s_to_ns(self._config.longest_s * 2 / 3)
        late = [(probability, block.stamp_ns) for block, probability in self._blocks if block.stamp_ns >= earliest_ns]
        cut_ns = min(late)[1]
        segment = self._make_segment(self.onset_ns, cut_ns, SegmentStage.FINAL)
        self._begin(cut_ns)
        while self._blocks[0][0].stamp_ns < cut_ns - self._padding_ns:
            self._blocks.popleft()
        return segment

    def _make_segment(self, start_ns: int, end_ns: int, stage: SegmentStage) -> AudioSegment:
        first_ns, last_ns = start_ns - self._padding_ns - BLOCK_NS, end_ns + self._padding_ns
        blocks = [block for block, _ in self._blocks if first_ns < block.stamp_ns < last_ns]
        return AudioSegment(
            start_ns=start_ns,
            end_ns=end_ns,
            sound_ns=blocks[0].stamp_ns,
            samples=np.concatenate([block.samples for block in blocks]),
            timing=blocks[0].timing,
            stage=stage,
        )
