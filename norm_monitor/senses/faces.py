"""Faces in a kept frame: boxes by BlazeFace, head directions by the face mesh. One thread, no emotion."""

import math
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from norm_core.engines.onnx_session import open_session
from norm_core.frame import Frame
from norm_core.presence import Face
from norm_monitor.senses.face_weights import DETECTOR, LANDMARKS, onnx_file
from norm_monitor.senses.head_pose import MESH_POINTS, HeadPose, head_pose

Numbers = NDArray[np.float64]

DETECTOR_PX, LANDMARKS_PX = 128, 192
CROP_SCALE = 1.5  # how much larger than the face's box the mesh wants its picture
MOST_POSES = 4  # heads measured in a frame; further faces are counted without a direction
OVERLAP = 0.3  # boxes that share more than this are one face


class FaceFinder:
    """The two models, loaded once; a frame in, its faces out, the largest first."""

    def __init__(
        self,
        weights_folder: Path | None = None,
        min_confidence: float = 0.5,
        away_yaw_deg: float = 30.0,
        away_pitch_deg: float = 25.0,
    ) -> None:
        self._detector = open_session(onnx_file(DETECTOR, weights_folder))
        self._mesh = open_session(onnx_file(LANDMARKS, weights_folder))
        self._min_confidence = min_confidence
        self._away_yaw_deg, self._away_pitch_deg = away_yaw_deg, away_pitch_deg
        self._anchors = _anchors()

    def find(self, frame: Frame) -> tuple[Face, ...]:
        """The faces in a frame's tile; a tile that is no JPEG has none."""
        bgr = cv2.imdecode(np.frombuffer(frame.tile_jpeg, np.uint8), cv2.IMREAD_COLOR)
        if bgr is None:
            return ()
        rgb = cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)
        found = sorted(self._detect(rgb), key=lambda face: -face[1][2] * face[1][3])
        return tuple(
            self._face(rgb, score, box, eyes, measured=index < MOST_POSES)
            for index, (score, box, eyes) in enumerate(found)
        )

    def _detect(self, rgb: Any) -> list[tuple[float, Numbers, Numbers]]:
        """Score, box (left, top, width, height in px) and the two eyes (px) of each face."""
        height, width = rgb.shape[:2]
        scale = DETECTOR_PX / max(height, width)
        small = cv2.resize(
            rgb, (max(1, round(width * scale)), max(1, round(height * scale))), interpolation=cv2.INTER_AREA
        )
        left, top = (DETECTOR_PX - small.shape[1]) // 2, (DETECTOR_PX - small.shape[0]) // 2
        square = np.zeros((DETECTOR_PX, DETECTOR_PX, 3), np.uint8)
        square[top : top + small.shape[0], left : left + small.shape[1]] = small
        tensor = (square.transpose(2, 0, 1)[np.newaxis] / 127.5 - 1).astype(np.float32)
        boxes_raw, logits = self._detector.run(["regressors", "classificators"], {"input": tensor})
        scores = 1 / (1 + np.exp(-np.clip(logits[0, :, 0], -80, 80)))
        likely = np.flatnonzero(scores > self._min_confidence)
        raw = boxes_raw[0, likely].astype(np.float64).reshape(-1, 8, 2)
        raw[:, 0] += self._anchors[likely]
        raw[:, 2:] += self._anchors[likely, np.newaxis]
        raw[:, 1] /= scale
        raw[:, [0, *range(2, 8)]] = (raw[:, [0, *range(2, 8)]] - (left, top)) / scale
        boxes = np.concatenate([raw[:, 0] - raw[:, 1] / 2, raw[:, 1]], axis=1)
        kept: list[tuple[float, Numbers, Numbers]] = []
        for index in np.argsort(-scores[likely], kind="stable"):
            box = boxes[index]
            if (box[2:] > 0).all() and all(_shared(box, other) <= OVERLAP for _, other, _ in kept):
                kept.append((float(scores[likely[index]]), box, raw[index, 2:4]))
        return kept

    def _face(self, rgb: Any, score: float, box: Numbers, eyes: Numbers, measured: bool) -> Face:
        height, width = rgb.shape[:2]
        pose = self._pose(rgb, box, eyes) if measured else None
        away = pose is not None and (
            abs(pose.yaw_deg) > self._away_yaw_deg or abs(pose.pitch_deg) > self._away_pitch_deg
        )
        return Face(
            left_ratio=float(box[0]) / width,
            top_ratio=float(box[1]) / height,
            width_ratio=float(box[2]) / width,
            height_ratio=float(box[3]) / height,
            confidence=score,
            yaw_deg=pose.yaw_deg if pose else None,
            pitch_deg=pose.pitch_deg if pose else None,
            roll_deg=pose.roll_deg if pose else None,
            looking_away=away,
        )

    def _pose(self, rgb: Any, box: Numbers, eyes: Numbers) -> HeadPose | None:
        """The head's direction from the mesh over the face's upright crop; None where the mesh sees no face."""
        angle_deg = math.degrees(math.atan2(eyes[1, 1] - eyes[0, 1], eyes[1, 0] - eyes[0, 0]))
        zoom = LANDMARKS_PX / (CROP_SCALE * float(max(box[2:])))
        centre = box[:2] + box[2:] / 2
        to_crop: Any = cv2.getRotationMatrix2D((float(centre[0]), float(centre[1])), angle_deg, zoom)
        to_crop[:, 2] += LANDMARKS_PX / 2 - centre
        crop = cv2.warpAffine(rgb, to_crop, (LANDMARKS_PX, LANDMARKS_PX), flags=cv2.INTER_LINEAR)
        tensor = (crop.transpose(2, 0, 1)[np.newaxis] / 255).astype(np.float32)
        mesh, presence = self._mesh.run(["conv2d_20", "conv2d_30"], {"input_1": tensor})
        if float(presence.ravel()[0]) <= 0:  # a logit
            return None
        points = mesh.reshape(-1, 3)[list(MESH_POINTS)].astype(np.float64)
        back = cv2.invertAffineTransform(to_crop)
        return head_pose(np.column_stack([points[:, :2] @ back[:, :2].T + back[:, 2], points[:, 2] / zoom]))


def _anchors() -> Numbers:
    """Where the detector's 896 boxes are measured from, in px of its input."""
    grids = []
    for cells, boxes_a_cell in ((16, 2), (8, 6)):
        middle = (np.arange(cells) + 0.5) * DETECTOR_PX / cells
        x, y = np.meshgrid(middle, middle)
        grids.append(np.repeat(np.stack([x, y], axis=-1).reshape(-1, 2), boxes_a_cell, axis=0))
    return np.concatenate(grids)


def _shared(one: Numbers, other: Numbers) -> float:
    """Intersection over union of two boxes."""
    sides = np.minimum(one[:2] + one[2:], other[:2] + other[2:]) - np.maximum(one[:2], other[:2])
    common = float(np.prod(np.maximum(sides, 0)))
    return common / float(np.prod(one[2:]) + np.prod(other[2:]) - common)
