"""A camera frame: a small JPEG tile and the identity of its source."""

from norm_core.records.record import record


@record
class Frame:
    """One stored camera frame with its source."""

    stamp_ns: int
    frame_id: str = ""
    source_topic: str
    source_encoding: str
    source_width_px: int
    source_height_px: int
    payload_sha256: str
    tile_width_px: int
    tile_height_px: int
    tile_jpeg: bytes
