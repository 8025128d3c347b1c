"""Ids of faces, by which box in one frame continues which box in the frame before."""

import uuid
from collections.abc import Sequence

from norm_core.records.presence import Face
from norm_core.runtime.time import s_to_ns

# How far the middle of a face may move between two frames, in widths and heights of the larger box.
MAX_STEP = 1.0


class FaceIds:
    """Random ids that last while a face is in sight. They follow from boxes alone, so a face that returns is new."""

    def __init__(self, left_after_s: float) -> None:
        self._left_after_ns = s_to_ns(left_after_s)
        self._seen: dict[str, tuple[int, Face]] = {}

    def follow(self, stamp_ns: int, faces: Sequence[Face]) -> dict[str, Face]:
        """Return the faces of the next frame by id."""
        for face_id, (seen_ns, _) in list(self._seen.items()):
            if not 0 <= stamp_ns - seen_ns <= self._left_after_ns:
                del self._seen[face_id]
        steps = sorted(
            (_measure_step(before, face), face_id, index)
            for face_id, (_, before) in self._seen.items()
            for index, face in enumerate(faces)
        )
        ids: dict[int, str] = {}
        for step, face_id, index in steps:
            if step <= MAX_STEP and index not in ids and face_id not in ids.values():
                ids[index] = face_id
        by_id = {ids.get(index) or f"f{uuid.uuid4().hex[:8]}": face for index, face in enumerate(faces)}
        self._seen |= {face_id: (stamp_ns, face) for face_id, face in by_id.items()}
        return by_id


def _measure_step(before: Face, after: Face) -> float:
    """Return how far a face moved, in widths or heights of the larger box, whichever is more."""
    right = after.left_ratio + after.width_ratio / 2 - before.left_ratio - before.width_ratio / 2
    down = after.top_ratio + after.height_ratio / 2 - before.top_ratio - before.height_ratio / 2
    width, height = (max(before.width_ratio, after.width_ratio), max(before.height_ratio, after.height_ratio))
    return max(abs(right) / width, abs(down) / height)
