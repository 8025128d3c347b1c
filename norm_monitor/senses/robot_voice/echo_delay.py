"""How long after the robot's stated starts its speech is audible: measured all the time, so that a drift shows.

It is measured as `tactful calibrate sensors` does, on the latest starts alone.
"""

import math
from collections import deque
from statistics import median

import numpy as np

from norm_core.runtime.time import NS_PER_MS, NS_PER_S
from norm_monitor.senses.microphone.block_stream import BLOCK_NS, RATE_HZ, Block
from norm_monitor.senses.microphone.onsets import HOP, above_floor, levels_db, onset_before, rises_db
from norm_monitor.senses.speech.segmenter import AudioSegment

DRIFTED_MS = 40.0
_HELD_S = 8
_REACH_NS, _AHEAD_NS = 400 * NS_PER_MS, 400 * NS_PER_MS
_STARTS, _FEWEST = 12, 6
_BEFORE, _AFTER = 24, 12  # hops
_LEAST_RISE_DB, _WIDEST_MS = 10.0, 30.0
_HOP_NS = HOP * NS_PER_S // RATE_HZ


class EchoDelay:
    """Follow the delay from a stated start to its sound. Feed blocks and starts in order of arrival."""

    def __init__(self) -> None:
        self._blocks: deque[Block] = deque(maxlen=_HELD_S * NS_PER_S // BLOCK_NS)
        self._due: deque[int] = deque(maxlen=_STARTS)
        self._delays_ms: deque[float | None] = deque(maxlen=_STARTS)  # None: not found near its start

    @property
    def delay_ms(self) -> float | None:
        """The median delay of the latest starts; None where they are too few or do not agree."""
        found = np.array([one for one in self._delays_ms if one is not None])
        if len(found) < _FEWEST:
            return None
        middle = float(np.median(found))
        spread = float(np.median(np.abs(found - middle)))
        return middle if spread <= _WIDEST_MS else None

    def take_start(self, stamp_ns: int) -> None:
        """Take the stamp of a start that is not estimated."""
        if stamp_ns not in self._due:
            self._due.append(stamp_ns)

    def take_block(self, block: Block) -> None:
        """Take sound, and measure the starts that it has passed by far enough."""
        if block.starts_anew:
            self._blocks.clear()
        self._blocks.append(block)
        if not self._due or block.stamp_ns < self._due[0] + _REACH_NS + _AHEAD_NS:
            return
        stamp_ns = self._due.popleft()
        first_ns = self._blocks[0].stamp_ns
        if first_ns > stamp_ns - _REACH_NS - _AHEAD_NS:
            return
        levels = levels_db(np.concatenate([one.samples for one in self._blocks]))
        rises = rises_db(above_floor(levels), _BEFORE, _AFTER)
        first = (stamp_ns - _REACH_NS - first_ns) // _HOP_NS
        window = rises[first : first + 2 * _REACH_NS // _HOP_NS]
        place = first + int(window.argmax())
        if window.max() < _LEAST_RISE_DB:
            self._delays_ms.append(None)
            return
        begun_ns = first_ns + onset_before(levels, place) * _HOP_NS
        self._delays_ms.append((begun_ns - stamp_ns) / NS_PER_MS)


_KEPT = 8
_FLOOR = 1e-10


def level_db(segment: AudioSegment, start_ns: int, end_ns: int) -> float:
    """Return the power of a stretch of a segment's sound in dB full scale."""
    first = max(0, (start_ns - segment.sound_ns) * RATE_HZ // NS_PER_S)
    last = max(first + 1, (end_ns - segment.sound_ns) * RATE_HZ // NS_PER_S)
    heard = segment.samples[first:last]
    return 10 * math.log10(max(float(np.mean(np.square(heard))) if len(heard) else 0.0, _FLOOR))


class EchoLevel:
    """The typical level of the robot's most recent words."""

    def __init__(self) -> None:
        self._levels_db: deque[float] = deque(maxlen=_KEPT)

    @property
    def usual_db(self) -> float | None:
        """The median level in dB full scale, or None before the first segment."""
        return median(self._levels_db) if self._levels_db else None

    def learn(self, heard_db: float) -> None:
        """Add the level of a segment that is certainly the robot's."""
        self._levels_db.append(heard_db)
