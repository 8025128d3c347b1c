"""Select and encode a camera's frames; count every unusable message by its fault."""

import hashlib
from concurrent.futures import Future

import cv2
import numpy as np
from pydantic import Field

from norm_core.records.frame import Frame
from norm_core.runtime.config import LIVE, Config
from norm_core.runtime.health_log import HealthLog
from norm_monitor.senses.camera.faults import CameraFault, log_fault
from norm_monitor.senses.camera.picture import Picture, PictureFormatError, Pixels, codec_of, decode
from norm_monitor.senses.camera.sampler import Sampler


class FrameConfig(Config):
    """How frames are sampled and encoded."""

    keep_hz: float = Field(
        default=1.0,
        gt=0,
        le=30,
        description="frames per second of stamp time; at most one in the monitor's windows.frames_every_s",
        json_schema_extra=LIVE,
    )
    tile_width_px: int = Field(
        default=448, ge=32, le=4096, description="the largest width of a frame; frames are never enlarged"
    )
    jpeg_quality: int = Field(default=90, ge=1, le=100, description="quality of the JPEG tiles")


# Blurring to a slightly smaller size and then sampling takes a third of the time of area interpolation. The
# difference is below the loss of JPEG.
_SOFTENED_BELOW = 2.0
_SOFTENING = 0.4


class FrameKeeper:
    """Turn one camera topic's pictures, in order of arrival, into frames."""

    def __init__(
        self, topic: str, health_log: HealthLog, config: FrameConfig | None = None, *, offset_ns: int = 0
    ) -> None:
        """Add `offset_ns` to each picture's stamp."""
        self._offset_ns = offset_ns
        self._topic, self._health_log, self._config = topic, health_log, config or FrameConfig()
        self.sampler = Sampler(topic, self._config.keep_hz, health_log)
        self._source: tuple[str, str, int, int] | None = None
        self.seen = self.kept = 0

    def keep(self, picture: Picture, ahead: Future[Frame] | None = None) -> Frame | None:
        """Return the frame if this is its period's first usable picture; `ahead` may have made it already."""
        self.seen += 1
        self._note_source(picture)
        stamp_ns = self.stamp_of(picture)
        if not self.sampler.is_due(stamp_ns):
            return None
        try:
            frame = ahead.result() if ahead else self.frame_of(picture)
        except PictureFormatError as error:
            log_fault(self._health_log, self._topic, error.fault, str(error)[:200])
            return None
        self.sampler.keep(stamp_ns)
        self.kept += 1
        return frame

    def stamp_of(self, picture: Picture) -> int:
        """Return a picture's stamp on the microphone's clock."""
        return picture.stamp_ns + self._offset_ns

    def frame_of(self, picture: Picture) -> Frame:
        """Return a picture as a frame, from any thread; raise PictureFormatError if it is unusable."""
        pixels = decode(picture)
        height, width = pixels.shape[:2]
        tile = _shrink(pixels, self._config.tile_width_px)
        encoded, jpeg = cv2.imencode(".jpg", tile, (cv2.IMWRITE_JPEG_QUALITY, self._config.jpeg_quality))
        if not encoded:
            raise RuntimeError("the image library could not encode a JPEG")
        return Frame(
            stamp_ns=self.stamp_of(picture),
            frame_id=picture.frame_id,
            source_topic=self._topic,
            source_encoding=codec_of(picture),
            source_width_px=width,
            source_height_px=height,
            payload_sha256=hashlib.sha256(memoryview(picture.data)).hexdigest(),
            tile_width_px=tile.shape[1],
            tile_height_px=tile.shape[0],
            tile_jpeg=jpeg.tobytes(),
        )

    def _note_source(self, picture: Picture) -> None:
        source = (picture.frame_id, picture.encoding, picture.width_px, picture.height_px)
        if self._source not in (None, source):
            log_fault(
                self._health_log,
                self._topic,
                CameraFault.SOURCE_CHANGED,
                f"last to frame_id {picture.frame_id!r}, {picture.encoding!r}",
            )
        self._source = source


def _shrink(pixels: Pixels, width_px: int) -> Pixels:
    height, width = pixels.shape[:2]
    if width <= width_px:
        return pixels
    ratio, size = width / width_px, (width_px, max(1, round(height * width_px / width)))
    if ratio < _SOFTENED_BELOW:
        soft = cv2.GaussianBlur(pixels, (3, 3), _SOFTENING * (ratio**2 - 1) ** 0.5)
        return np.asarray(cv2.resize(soft, size, interpolation=cv2.INTER_LINEAR), np.uint8)
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
