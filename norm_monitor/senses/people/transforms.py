"""The distance of a frame from the robot's base, from a tree of tf transforms."""

import math
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from norm_core.records.record import record
from norm_core.records.stamps import join_stamp

V = TypeVar("V")

# The number of stored values of one quantity.
MAX_KEPT = 256
MAX_FRAMES = 1024
# The number of transforms on the way from a frame to the root.
MAX_CHAIN = 64


class StampedValues(Generic[V]):
    """The newest values of one quantity, by stamp."""

    def __init__(self, max_kept: int = MAX_KEPT) -> None:
        self._stamps: list[int] = []
        self._values: list[V] = []
        self._max_kept = max_kept

    def put(self, stamp_ns: int, value: V) -> None:
        """Store a value. Of two with the same stamp, the later one holds, and the oldest is dropped."""
        index = bisect_right(self._stamps, stamp_ns)
        if index and self._stamps[index - 1] == stamp_ns:
            self._values[index - 1] = value
            return
        self._stamps.insert(index, stamp_ns)
        self._values.insert(index, value)
        if len(self._stamps) > self._max_kept:
            del self._stamps[0], self._values[0]

    def value_at(self, stamp_ns: int) -> tuple[int, V] | None:
        """Return the value at a time, with its own stamp."""
        index = bisect_right(self._stamps, stamp_ns)
        return (self._stamps[index - 1], self._values[index - 1]) if index else None

    def newest(self) -> V | None:
        """Return the last stored value; None without values."""
        return self._values[-1] if self._values else None

    def oldest(self) -> tuple[int, V] | None:
        """Return the first stored value with its stamp; None without values."""
        return (self._stamps[0], self._values[0]) if self._stamps else None


Point = tuple[float, float, float]


class TransformError(ValueError):
    """A transform is not valid, because of NaN or a quaternion without length."""


@record
class Link:
    """The position of a frame in its parent. The rotation is a unit quaternion x, y, z, w."""

    parent: str
    translation: Point
    rotation: tuple[float, float, float, float]

    def to_parent(self, point: Point) -> Point:
        """Transform a point from the frame to its parent."""
        x, y, z = _rotate(self.rotation, point)
        return x + self.translation[0], y + self.translation[1], z + self.translation[2]

    def from_parent(self, point: Point) -> Point:
        """Transform a point from the parent to the frame."""
        x, y, z, w = self.rotation
        moved = tuple(p - t for p, t in zip(point, self.translation, strict=True))
        return _rotate((-x, -y, -z, w), (moved[0], moved[1], moved[2]))


class TransformTree:
    """A store of transforms in any order, which answers for any recent time."""

    def __init__(self) -> None:
        self._links: dict[str, StampedValues[Link]] = {}
        self._fixed: dict[str, Link] = {}

    def put(self, transform: Any, static: bool = False) -> int:
        """Store a TransformStamped, and return its stamp; 0 if it is static. Raises TransformError if it is invalid."""
        child = _normalize_name(transform.child_frame_id)
        link = _read_link(transform)
        stamp_ns = join_stamp(int(transform.header.stamp.sec), int(transform.header.stamp.nanosec))
        is_new = child not in self._links and child not in self._fixed
        if is_new and len(self._links) + len(self._fixed) >= MAX_FRAMES:
            raise TransformError(f"{child} is one frame more than {MAX_FRAMES}")
        if static or not stamp_ns:
            self._fixed[child] = link
            return 0
        self._links.setdefault(child, StampedValues()).put(stamp_ns, link)
        return stamp_ns

    def drop_moving_frames(self) -> None:
        """Drop all transforms that are not static, for example after a time jump."""
        self._links.clear()

    def ground_distance_m(self, frame: str, base: str, at_ns: int, believed_ns: int) -> float | None:
        """Return the distance of a frame in the horizontal plane of the base, in metres. None if it is unknown.

        The transform of the frame must be at most `believed_ns` old; those of the robot's joints may be older.
        """
        frame = _normalize_name(frame)
        base = _normalize_name(base)
        if not self._is_fresh(frame, at_ns, believed_ns):
            return None
        point: Point = (0.0, 0.0, 0.0)
        points = {frame: point}
        for link in self._climb(frame, at_ns):
            point = link.to_parent(point)
            points[link.parent] = point
        downwards: list[Link] = []
        common = base
        for link in self._climb(base, at_ns):
            if common in points:
                break
            downwards.append(link)
            common = link.parent
        if common not in points:
            return None
        point = points[common]
        for link in reversed(downwards):
            point = link.from_parent(point)
        return math.hypot(point[0], point[1])

    def newest_ns(self, frame: str, at_ns: int) -> int | None:
        """Return the newest stamp of the frame's own transform up to a time."""
        newest = self._links[frame].value_at(at_ns) if frame in self._links else None
        return newest[0] if newest else None

    def _is_fresh(self, frame: str, at_ns: int, believed_ns: int) -> bool:
        """Whether the first non-static transform on the way up is recent."""
        depth = 0
        while frame in self._fixed and frame not in self._links and depth < MAX_CHAIN:
            frame = self._fixed[frame].parent
            depth += 1
        stamp_ns = self.newest_ns(frame, at_ns)
        return frame not in self._links if stamp_ns is None else at_ns - stamp_ns <= believed_ns

    def _climb(self, frame: str, at_ns: int) -> Iterator[Link]:
        """Yield the links from a frame up to the root."""
        for _ in range(MAX_CHAIN):
            link = self._link_at(frame, at_ns)
            if link is None:
                return
            yield link
            frame = link.parent

    def _link_at(self, frame: str, at_ns: int) -> Link | None:
        if frame in self._links:
            link = self._links[frame].value_at(at_ns) or self._links[frame].oldest()
            return link[1] if link else None
        return self._fixed.get(frame)


def _read_link(transform: Any) -> Link:
    shift, turn = transform.transform.translation, transform.transform.rotation
    translation = (float(shift.x), float(shift.y), float(shift.z))
    rotation = (float(turn.x), float(turn.y), float(turn.z), float(turn.w))
    norm = math.hypot(*rotation)
    if not math.isfinite(norm + sum(translation)) or norm < 1e-6:
        raise TransformError(
            f"the transform of {transform.child_frame_id} is not a position and a rotation: {translation}, {rotation}"
        )
    x, y, z, w = (part / norm for part in rotation)
    return Link(parent=_normalize_name(transform.header.frame_id), translation=translation, rotation=(x, y, z, w))


def _rotate(rotation: tuple[float, float, float, float], point: Point) -> Point:
    # v + 2w(q x v) + 2q x (q x v)
    qx, qy, qz, w = rotation
    x, y, z = point
    tx, ty, tz = 2 * (qy * z - qz * y), 2 * (qz * x - qx * z), 2 * (qx * y - qy * x)
    return (
        x + w * tx + qy * tz - qz * ty,
        y + w * ty + qz * tx - qx * tz,
        z + w * tz + qx * ty - qy * tx,
    )


def _normalize_name(frame: str) -> str:
    return str(frame).removeprefix("/")
