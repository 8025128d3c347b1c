"""Head direction from six points of the face mesh in space."""

import math

import numpy as np
from numpy.typing import NDArray

from norm_core.records.record import record

Points = NDArray[np.float64]

# Outer eye corners, mouth corners, forehead and chin: indices into the 468-point mesh.
MESH_POINTS = (33, 263, 61, 291, 10, 152)


@record
class HeadPose:
    """Degrees relative to the line of sight: yaw to the image's right, pitch up, roll clockwise in the image."""

    yaw_deg: float
    pitch_deg: float
    roll_deg: float


def head_pose(points: Points) -> HeadPose | None:
    """Return the pose of MESH_POINTS, given as right, down, forward; None if they do not span a face."""
    eye_left, eye_right, mouth_left, mouth_right, forehead, chin = points
    right = (eye_right - eye_left) + (mouth_right - mouth_left)
    into = np.cross(right, chin - forehead)
    width, depth = float(np.linalg.norm(right)), float(np.linalg.norm(into))
    if not (math.isfinite(width) and math.isfinite(depth) and width and depth):
        return None
    right, nose = right / width, -into / depth
    return HeadPose(
        yaw_deg=math.degrees(math.atan2(nose[0], -nose[2])),
        pitch_deg=math.degrees(math.asin(max(-1.0, min(1.0, -nose[1])))),
        roll_deg=math.degrees(math.atan2(right[1], right[0])),
    )
