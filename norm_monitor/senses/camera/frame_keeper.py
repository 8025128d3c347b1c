"""Select and encode a camera's frames; count every unusable message by its fault."""

import hashlib
from bisect import bisect_left, insort
from collections import deque

import cv2
import numpy as np
from pydantic import Field

from norm_core.decoding.picture_decoding import encode_jpeg
from norm_core.health.health_log import HealthLog
from norm_core.records.frame import Frame
from norm_core.records.record import record
from norm_core.records.stamps import is_usable_stamp
from norm_core.runtime.config import LIVE, Config
from norm_core.runtime.time import NS_PER_S, ns_to_s
from norm_monitor.senses.camera.faults import CameraFault, log_fault
from norm_monitor.senses.camera.picture import Picture, PictureFormatError, Pixels, decode, name_codec

cv2.setNumThreads(1)  # the threads of its pool spin after each call for longer than they save, and forbid a fork

# A longer step in stamps comes from a clock, not from a camera.
JUMP_NS = 60 * NS_PER_S
# The number of intervals from which the camera's frame rate is estimated.
_MAX_INTERVALS = 60
# A step may be a gap if it exceeds this many camera intervals.
_GAP_INTERVALS = 1.8
# A longer step is a gap, whatever follows it.
_CERTAIN_GAP_INTERVALS = 3.0
# The number of intervals over which jitter averages out.
_SPAN_INTERVALS = 4

# Below this ratio of sizes, a blur with sampling takes a third of the time of area interpolation. The difference is
# smaller than the loss of JPEG.
_MAX_BLUR_RATIO = 2.0
_BLUR_SIGMA_FACTOR = 0.4


@record
class _Step:
    """The step from one stamp to the next."""

    length_ns: int
    leaves_period_empty: bool


class Sampler:
    """A selection of frames by their stamps, in order of arrival. `keep` confirms that a selected frame was usable."""

    def __init__(self, topic: str, keep_hz: float, health_log: HealthLog) -> None:
        """Begin without frames. Raises ValueError unless `keep_hz` is above 0."""
        self._topic = topic
        self._health_log = health_log
        self._latest_ns: int | None = None
        self._kept_ns: int | None = None
        self._suspect: _Step | None = None  # either a gap or jitter, until the next step shows which
        self.set_rate(keep_hz)
        self._recent_ns: deque[int] = deque(maxlen=_SPAN_INTERVALS)  # the latest intervals
        self._spans_ns: deque[int] = deque()  # sums of _SPAN_INTERVALS intervals, in order of arrival
        self._sorted_spans_ns: list[int] = []

    def set_rate(self, keep_hz: float) -> None:
        """Keep at another rate from the next frame on. Raises ValueError unless it is above 0."""
        if keep_hz == getattr(self, "_keep_hz", None):
            return
        if not keep_hz > 0:
            raise ValueError(f"frames are kept at a rate above 0, not {keep_hz}")
        self._keep_hz = keep_hz
        self._period_ns = round(NS_PER_S / keep_hz)

    def is_due(self, stamp_ns: int) -> bool:
        """Whether the frame of a stamp should be decoded. Counts irregularities of the stamp."""
        if self._latest_ns is not None and not self._check_step(stamp_ns, self._latest_ns):
            return False
        self._latest_ns = stamp_ns
        return self._kept_ns is None or self.slot_of(stamp_ns) > self.slot_of(self._kept_ns)

    def keep(self, stamp_ns: int) -> None:
        """Use the frame at `stamp_ns` for its period. Without this call, the next frame is tried."""
        self._kept_ns = stamp_ns

    def slot_of(self, stamp_ns: int) -> int:
        """Return the number of a stamp's period, which has one frame."""
        return stamp_ns // self._period_ns

    def _check_step(self, stamp_ns: int, latest_ns: int) -> bool:
        """Return whether a stamp continues the stream, and count its fault."""
        step_ns = stamp_ns - latest_ns
        if step_ns == 0:
            log_fault(self._health_log, self._topic, CameraFault.DUPLICATE)
            return False
        if step_ns < -JUMP_NS:
            log_fault(self._health_log, self._topic, CameraFault.JUMPED_BACK, f"by {ns_to_s(-step_ns):.0f} s")
            self._kept_ns = None
            self._suspect = None
            return True
        if step_ns < 0:
            log_fault(self._health_log, self._topic, CameraFault.REORDERED, f"by {ns_to_s(-step_ns):.3f} s")
            return False
        if step_ns > JUMP_NS:
            log_fault(self._health_log, self._topic, CameraFault.JUMPED_FORWARD, f"by {ns_to_s(step_ns):.0f} s")
            return True
        leaves_empty = self.slot_of(stamp_ns) - self.slot_of(latest_ns) > 1
        self._detect_gap(_Step(length_ns=step_ns, leaves_period_empty=leaves_empty))
        return True

    def _detect_gap(self, step: _Step) -> None:
        """Count a gap that this step is, or that it shows the step before to be."""
        if self._spans_ns:
            # The interval of the camera, despite jitter, lost frames and a single irregular pair.
            interval_ns = self._sorted_spans_ns[:2][-1] / _SPAN_INTERVALS
            # After a frame that was only late, the next one comes correspondingly sooner.
            if self._suspect and self._suspect.length_ns + step.length_ns > (_GAP_INTERVALS + 1) * interval_ns:
                self._count_gap(self._suspect)
            is_suspect = _GAP_INTERVALS < step.length_ns / interval_ns <= _CERTAIN_GAP_INTERVALS
            self._suspect = step if is_suspect else None
            if step.length_ns > _CERTAIN_GAP_INTERVALS * interval_ns:
                self._count_gap(step)
        self._recent_ns.append(step.length_ns)
        if len(self._recent_ns) == _SPAN_INTERVALS:
            self._spans_ns.append(sum(self._recent_ns))
            insort(self._sorted_spans_ns, self._spans_ns[-1])
            if len(self._spans_ns) > _MAX_INTERVALS - _SPAN_INTERVALS + 1:
                del self._sorted_spans_ns[bisect_left(self._sorted_spans_ns, self._spans_ns.popleft())]

    def _count_gap(self, step: _Step) -> None:
        """Count a gap; it is a fault where a period lacks its frame."""
        if step.leaves_period_empty:
            log_fault(self._health_log, self._topic, CameraFault.STAMP_GAP)
        else:
            self._health_log.count(CameraFault.STAMP_GAP.value)


class FrameConfig(Config):
    """How frames are sampled and encoded."""

    keep_hz: float = Field(
        default=1.0,
        gt=0,
        le=30,
        description="frames kept per second of stamp time; at most one per windows.frames_every_s of the monitor",
        json_schema_extra=LIVE,
    )
    tile_width_px: int = Field(
        default=448, ge=32, le=4096, description="maximum width of a frame; frames are never enlarged"
    )
    jpeg_quality: int = Field(default=90, ge=1, le=100, description="JPEG quality of the frames")


class FrameKeeper:
    """A converter of the pictures of one camera topic, in order of arrival, into frames."""

    def __init__(
        self, topic: str, health_log: HealthLog, config: FrameConfig | None = None, *, offset_ns: int = 0
    ) -> None:
        """Prepare for a topic. `offset_ns` is added to the stamp of each picture."""
        self._offset_ns = offset_ns
        self._topic, self._health_log, self._config = topic, health_log, config or FrameConfig()
        self.sampler = Sampler(topic, self._config.keep_hz, health_log)

    def keep(self, picture: Picture) -> Frame | None:
        """Return the frame if this is its period's first usable picture."""
        if not is_usable_stamp(picture.stamp_ns):
            log_fault(self._health_log, self._topic, CameraFault.NO_STAMP)
            return None
        stamp_ns = picture.stamp_ns + self._offset_ns
        if not self.sampler.is_due(stamp_ns):
            return None
        try:
            frame = self._encode(picture, stamp_ns)
        except PictureFormatError as error:
            log_fault(self._health_log, self._topic, error.fault, str(error)[:200])
            return None
        self.sampler.keep(stamp_ns)
        return frame

    def _encode(self, picture: Picture, stamp_ns: int) -> Frame:
        pixels = decode(picture)
        height, width = pixels.shape[:2]
        tile = _shrink(pixels, self._config.tile_width_px)
        return Frame(
            stamp_ns=stamp_ns,
            frame_id=picture.frame_id,
            source_topic=self._topic,
            source_encoding=name_codec(picture),
            source_width_px=width,
            source_height_px=height,
            payload_sha256=hashlib.sha256(memoryview(picture.data)).hexdigest(),
            tile_width_px=tile.shape[1],
            tile_height_px=tile.shape[0],
            tile_jpeg=encode_jpeg(tile, self._config.jpeg_quality),
        )


def _shrink(pixels: Pixels, width_px: int) -> Pixels:
    """Return a picture of at most this width."""
    height, width = pixels.shape[:2]
    if width <= width_px:
        return pixels
    ratio = width / width_px
    size = (width_px, max(1, round(height * width_px / width)))
    if ratio < _MAX_BLUR_RATIO:
        blurred = cv2.GaussianBlur(pixels, (3, 3), _BLUR_SIGMA_FACTOR * (ratio**2 - 1) ** 0.5)
        return np.asarray(cv2.resize(blurred, size, interpolation=cv2.INTER_LINEAR), np.uint8)
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
