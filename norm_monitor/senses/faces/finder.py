"""Faces in a frame: boxes with BlazeFace, head directions with the face mesh. For one thread; no emotions."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from norm_core.engines.onnx.session import in_order, open_session
from norm_core.engines.providers import OnFault, Provider
from norm_core.records.frame import Frame
from norm_core.records.presence import Face
from norm_core.runtime.picture_decoding import decode_picture
from norm_monitor.senses.faces.detector import FaceDetector, Numbers
from norm_monitor.senses.faces.head_pose import MESH_POINTS, HeadPose, head_pose
from norm_monitor.senses.faces.weights import LANDMARKS, SHORT_RANGE, onnx_file

LANDMARKS_PX = 192
CROP_SCALE = 1.5  # the mesh's crop relative to the face's box
MOST_POSES = 4  # heads measured in a frame; further faces have no direction


class FaceFinder:
    """Both models, loaded once."""

    def __init__(  # noqa: PLR0917
        self,
        weights_folder: Path | None = None,
        min_confidence: float = 0.5,
        away_yaw_deg: float = 30.0,
        away_pitch_deg: float = 25.0,
        providers: Sequence[Provider] = ("cpu",),
        on_fault: OnFault = lambda fault: None,
    ) -> None:
        self._detector = FaceDetector(SHORT_RANGE, min_confidence, weights_folder, providers, on_fault)
        mesh = onnx_file(LANDMARKS, weights_folder)
        self._mesh = open_session(mesh, providers=in_order(providers), on_fault=on_fault)
        self._away_yaw_deg, self._away_pitch_deg = away_yaw_deg, away_pitch_deg

    def find(self, frame: Frame) -> tuple[Face, ...]:
        """Return the faces in a frame's tile, largest first; none if the tile is not a JPEG."""
        bgr = decode_picture(frame.tile_jpeg)
        if bgr is None:
            return ()
        rgb = cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)
        found = sorted(self._detector.detect(bgr), key=lambda face: -face.box[2] * face.box[3])
        return tuple(
            self._face(rgb, face.score, face.box, face.eyes, measured=index < MOST_POSES)
            for index, face in enumerate(found)
        )

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
        """Return the head's direction from the mesh on the face's upright crop; None if the mesh finds no face."""
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
