"""Faces in a frame: boxes with BlazeFace, head directions with the face mesh. For one thread; no emotions."""

import hashlib
import logging
import math
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from norm_core.decoding.picture_decoding import decode_picture
from norm_core.engines.onnx.session import list_providers, open_session
from norm_core.engines.providers import OnFault, Provider
from norm_core.files.atomic_file import atomic_path
from norm_core.files.data_files import make_cache_folder
from norm_core.models.catalogue import Catalogue
from norm_core.models.store import Store
from norm_core.records.frame import Frame
from norm_core.records.presence import Face
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM

SHORT_RANGE = "face_detection_short_range"
FULL_RANGE = "face_detection_full_range"
LANDMARKS = "face_landmark"
_MODELS = {SHORT_RANGE: "blazeface-short-range", FULL_RANGE: "blazeface-full-range", LANDMARKS: "face-mesh"}

# Boxes with a larger overlap are one face.
_MAX_OVERLAP = 0.3
# By model: the side of its input in px; and for each of its grids, the cells on a side and the boxes of a cell.
_LAYOUTS = {SHORT_RANGE: (128, ((16, 2), (8, 6))), FULL_RANGE: (192, ((48, 1),))}
# Outer eye corners, mouth corners, forehead and chin: indices into the 468-point mesh.
MESH_POINTS = (33, 263, 61, 291, 10, 152)
# The side of the mesh's input.
LANDMARKS_PX = 192
# The size of the mesh's crop, relative to the box of the face.
CROP_SCALE = 1.5
# The number of heads that are measured in a frame; further faces have no direction.
MAX_POSES = 4


class FaceWeightsMissingError(TactfulError, RuntimeError):
    """The weights or their converter are missing, or cannot be stored. The message gives the remedy."""


def prepare_onnx_file(name: str, folder: Path | None = None) -> Path:
    """Return the ONNX file of a model, which is converted if it is missing. An interrupted call leaves no file."""
    source = _find_tflite_file(name)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    target = (folder or make_cache_folder("weights")) / f"{name}-{digest}.onnx"
    if not target.is_file():
        _convert(source, target)
    return target


def _find_tflite_file(name: str) -> Path:
    """Find the file of a model without importing its package, which needs tensorflow."""
    model = _MODELS.get(name, name)
    files = Store().find(Catalogue().read_manifest(model))
    source = files[0] / f"{name}.tflite" if files else None
    if source is None or not source.is_file():
        raise FaceWeightsMissingError(f"the face model {model} is not installed; run {PROGRAM} models add {model}")
    return source


def _convert(source: Path, target: Path) -> None:
    """Convert a model to ONNX. Raises FaceWeightsMissingError if that is not possible."""
    try:
        converter = import_module("tflite2onnx")
    except ImportError as error:
        raise FaceWeightsMissingError("the face models cannot be converted: install tflite2onnx") from error
    # It warns about each half-precision tensor, and tests compare these with the packaged models.
    logging.getLogger("tflite2onnx").setLevel(logging.ERROR)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(target, concurrent=True) as path:
            converter.convert(str(source), str(path))
    except OSError as error:
        raise FaceWeightsMissingError(f"{target.parent}: cannot hold the face models: {error.strerror}") from error


Numbers = NDArray[np.float64]


@record
class DetectedFace:
    """The score of a face, its box (left, top, width, height in px) and its two eyes (px)."""

    score: float
    box: Numbers
    eyes: Numbers


class FaceDetector:
    """A loaded face model. It finds faces from about a tenth of the picture's longer side."""

    def __init__(
        self,
        name: str,
        min_confidence: float,
        weights_folder: Path | None = None,
        providers: Sequence[Provider] = ("cpu",),
        on_fault: OnFault = lambda fault: None,
    ) -> None:
        weights = prepare_onnx_file(name, weights_folder)
        self._session = open_session(weights, providers=list_providers(providers), on_fault=on_fault)
        (self._input,) = self._session.inputs
        self.input_px, grids = _LAYOUTS[name]
        self._anchors = np.concatenate([_make_anchors(self.input_px, cells, boxes) for cells, boxes in grids])
        self._min_confidence = min_confidence

    def detect(self, bgr: Any) -> list[DetectedFace]:
        """Return the faces in a picture, highest score first."""
        height, width = bgr.shape[:2]
        side = self.input_px
        scale = side / max(height, width)
        size = max(1, round(width * scale)), max(1, round(height * scale))
        small = cv2.resize(bgr, size, interpolation=cv2.INTER_AREA)
        left, top = (side - size[0]) // 2, (side - size[1]) // 2
        square = np.zeros((side, side, 3), np.uint8)
        square[top : top + size[1], left : left + size[0]] = small[..., ::-1]
        tensor = (square.transpose(2, 0, 1)[np.newaxis] / 127.5 - 1).astype(np.float32)
        boxes_raw, logits = self._session.run(None, {self._input: tensor})
        scores = 1 / (1 + np.exp(-np.clip(logits[0, :, 0], -80, 80)))
        likely = np.flatnonzero(scores > self._min_confidence)
        raw = boxes_raw[0, likely].astype(np.float64).reshape(-1, 8, 2)
        raw[:, 0] += self._anchors[likely]
        raw[:, 2:] += self._anchors[likely, np.newaxis]
        raw[:, 1] /= scale
        raw[:, [0, *range(2, 8)]] = (raw[:, [0, *range(2, 8)]] - (left, top)) / scale
        boxes = np.concatenate([raw[:, 0] - raw[:, 1] / 2, raw[:, 1]], axis=1)
        faces: list[DetectedFace] = []
        for index in np.argsort(-scores[likely], kind="stable"):
            box = boxes[index]
            if (box[2:] > 0).all() and all(_measure_overlap(box, other.box) <= _MAX_OVERLAP for other in faces):
                faces.append(DetectedFace(score=float(scores[likely[index]]), box=box, eyes=raw[index, 2:4]))
        return faces


def _make_anchors(side_px: int, cells: int, boxes_a_cell: int) -> Numbers:
    """Return the points from which a grid measures boxes, in px of the model's input."""
    middle = (np.arange(cells) + 0.5) * side_px / cells
    x, y = np.meshgrid(middle, middle)
    return np.repeat(np.stack([x, y], axis=-1).reshape(-1, 2), boxes_a_cell, axis=0)


def _measure_overlap(box: Numbers, other: Numbers) -> float:
    """Return the intersection over union of two boxes."""
    sides = np.minimum(box[:2] + box[2:], other[:2] + other[2:]) - np.maximum(box[:2], other[:2])
    common = float(np.prod(np.maximum(sides, 0)))
    return common / float(np.prod(box[2:]) + np.prod(other[2:]) - common)


@record
class HeadPose:
    """Degrees relative to the line of sight: yaw to the image's right, pitch up, roll clockwise in the image."""

    yaw_deg: float
    pitch_deg: float
    roll_deg: float


def measure_head_pose(points: Numbers) -> HeadPose | None:
    """Measure the pose of MESH_POINTS, with axes right, down and forward. None if they do not span a face."""
    eye_left, eye_right, mouth_left, mouth_right, forehead, chin = points
    right = (eye_right - eye_left) + (mouth_right - mouth_left)
    into = np.cross(right, chin - forehead)
    width, depth = float(np.linalg.norm(right)), float(np.linalg.norm(into))
    if not (math.isfinite(width) and math.isfinite(depth) and width and depth):
        return None
    right, nose = right / width, -into / depth
    return HeadPose(
        yaw_deg=_to_degrees(math.atan2(nose[0], -nose[2])),
        pitch_deg=_to_degrees(math.asin(max(-1.0, min(1.0, -nose[1])))),
        roll_deg=_to_degrees(math.atan2(right[1], right[0])),
    )


def _to_degrees(radians: float) -> float:
    """Convert radians to degrees, rounded so that a message in radians gives the same."""
    return round(math.degrees(radians), 3)


# A head turned, raised or lowered further than this looks away.
AWAY_YAW_DEG, AWAY_PITCH_DEG = 30.0, 25.0


class FaceFinder:
    """A finder of faces and their directions, with both models loaded."""

    def __init__(
        self,
        weights_folder: Path | None = None,
        min_confidence: float = 0.5,
        providers: Sequence[Provider] = ("cpu",),
        on_fault: OnFault = lambda fault: None,
    ) -> None:
        self._detector = FaceDetector(SHORT_RANGE, min_confidence, weights_folder, providers, on_fault)
        mesh = prepare_onnx_file(LANDMARKS, weights_folder)
        self._mesh = open_session(mesh, providers=list_providers(providers), on_fault=on_fault)

    def find(self, frame: Frame) -> tuple[Face, ...]:
        """Return the faces in the tile of a frame, largest first; none if the tile is not a JPEG."""
        bgr = decode_picture(frame.tile_jpeg)
        if bgr is None:
            return ()
        rgb = cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)
        faces = sorted(self._detector.detect(bgr), key=lambda face: -face.box[2] * face.box[3])
        return tuple(
            self._make_face(rgb, face.score, face.box, face.eyes, is_measured=index < MAX_POSES)
            for index, face in enumerate(faces)
        )

    def _make_face(self, rgb: Any, score: float, box: Numbers, eyes: Numbers, is_measured: bool) -> Face:
        height, width = rgb.shape[:2]
        pose = self._measure_pose(rgb, box, eyes) if is_measured else None
        away = pose is not None and (abs(pose.yaw_deg) > AWAY_YAW_DEG or abs(pose.pitch_deg) > AWAY_PITCH_DEG)
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

    def _measure_pose(self, rgb: Any, box: Numbers, eyes: Numbers) -> HeadPose | None:
        """Measure the direction of a head from the mesh on its upright crop. None if the mesh finds no face."""
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
        return measure_head_pose(np.column_stack([points[:, :2] @ back[:, :2].T + back[:, 2], points[:, 2] / zoom]))
