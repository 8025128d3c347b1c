"""The usual level of the robot's own voice in its microphone, learnt from segments that are certainly its own."""

import math
from collections import deque
from statistics import median

import numpy as np

from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.microphone.block_stream import RATE_HZ
from norm_monitor.senses.speech.segmenter import AudioSegment

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
