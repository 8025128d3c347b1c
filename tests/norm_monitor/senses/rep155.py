"""Messages of REP-155 and of tf with the fields that they have, and no type."""

from collections.abc import Sequence
from types import SimpleNamespace as Fields

from norm_core.records.stamps import split_stamp

Place = tuple[float, float, float]
UPRIGHT = (0.0, 0.0, 0.0, 1.0)


def header(stamp_ns: int, frame_id: str = "") -> Fields:
    sec, nanosec = split_stamp(stamp_ns)
    return Fields(stamp=Fields(sec=sec, nanosec=nanosec), frame_id=frame_id)


def ids(stamp_ns: int, *persons: str) -> Fields:
    return Fields(header=header(stamp_ns), ids=list(persons))


def roi(stamp_ns: int, left: float, top: float, right: float, bottom: float) -> Fields:
    return Fields(header=header(stamp_ns), xmin=left, ymin=top, xmax=right, ymax=bottom, c=0.9)


def level(stamp_ns: int, number: int) -> Fields:
    return Fields(header=header(stamp_ns), level=number)


def gaze(stamp_ns: int, sender: str, receiver: str = "") -> Fields:
    return Fields(header=header(stamp_ns), sender=sender, receiver=receiver)


def transform(stamp_ns: int, parent: str, child: str, place: Place, rotation: Sequence[float] = UPRIGHT) -> Fields:
    x, y, z, w = rotation
    inner = Fields(translation=Fields(x=place[0], y=place[1], z=place[2]), rotation=Fields(x=x, y=y, z=z, w=w))
    return Fields(header=header(stamp_ns, parent), child_frame_id=child, transform=inner)


def tf(*transforms: Fields) -> Fields:
    return Fields(transforms=list(transforms))
