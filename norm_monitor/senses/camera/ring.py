"""The latest kept frames, bounded in seconds, count and bytes."""

from collections import deque

from norm_core.records.frame import Frame
from norm_core.runtime.time import Clock, ns_to_s, s_to_ns


class StaleInputError(RuntimeError):
    """There is no frame, or none young enough; the message says how old the latest is."""


class FrameRing:
    """Frames in the order kept; the oldest give way."""

    def __init__(self, clock: Clock, length_s: float, max_frames: int, max_bytes: int) -> None:
        if not (length_s > 0 and max_frames > 0 and max_bytes > 0):
            raise ValueError("a ring of frames needs room in seconds, frames and bytes")
        self._clock = clock
        self._length_ns, self._max_frames, self._max_bytes = s_to_ns(length_s), max_frames, max_bytes
        self._frames: deque[Frame] = deque()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def frames(self) -> tuple[Frame, ...]:
        return tuple(self._frames)

    def put(self, frame: Frame) -> None:
        """Takes a frame; one that is larger than the whole ring leaves it empty."""
        self._frames.append(frame)
        self.size_bytes += len(frame.tile_jpeg)
        while self._frames and (
            len(self._frames) > self._max_frames
            or self.size_bytes > self._max_bytes
            or frame.stamp_ns - self._frames[0].stamp_ns >= self._length_ns
        ):
            self.size_bytes -= len(self._frames.popleft().tile_jpeg)

    def clear(self) -> None:
        self._frames.clear()
        self.size_bytes = 0

    def read_latest(self, max_age_s: float) -> Frame:
        """The latest frame where it is at most max_age_s old, else a StaleInputError."""
        if not self._frames:
            raise StaleInputError("no frame has been kept yet")
        latest = self._frames[-1]
        age_s = ns_to_s(self._clock.now_ns() - latest.stamp_ns)
        if age_s > max_age_s:
            raise StaleInputError(f"the latest frame is {age_s:.3f} s old, more than {max_age_s:g} s")
        return latest
