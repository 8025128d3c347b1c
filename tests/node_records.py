"""Records as the nodes publish them, of which a test states only what it is about."""

from typing import Any

from norm_core.records.frame import Frame
from norm_core.records.status import Health, MonitorStatus, NodeState


def node_status(stamp_ns: int, **changes: Any) -> MonitorStatus:
    """Return a heartbeat of the ears, which are well."""
    plain: dict[str, Any] = {
        "node": "/tactful/ears",
        "state": NodeState.ACTIVE,
        "health": Health.OK,
        "software_version": "1",
        "config_sha256": "",
        "instance_id": "",
        "started_ns": stamp_ns,
    }
    return MonitorStatus(stamp_ns=stamp_ns, **plain | changes)


def camera_frame(stamp_ns: int, tile_jpeg: bytes, width_px: int = 320, height_px: int = 240) -> Frame:
    """Return a frame of a camera of this size."""
    return Frame(
        stamp_ns=stamp_ns,
        source_topic="/camera",
        source_encoding="bgr8",
        source_width_px=width_px,
        source_height_px=height_px,
        payload_sha256="",
        tile_width_px=width_px,
        tile_height_px=height_px,
        tile_jpeg=tile_jpeg,
    )


def counted(told_by: Any) -> dict[str, int]:
    """Return the counters of whatever has some, by name."""
    return {counter.name: counter.count for counter in told_by.counters}
