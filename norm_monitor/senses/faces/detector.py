"""The BlazeFace models: face boxes in a picture. For one thread."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from norm_core.engines.onnx.session import in_order, open_session
from norm_core.engines.providers import OnFault, Provider
from norm_core.records.record import record
from norm_monitor.senses.faces.weights import FULL_RANGE, SHORT_RANGE, onnx_file

Numbers = NDArray[np.float64]

OVERLAP = 0.3  # boxes with a larger overlap are one face
# By model: the side of its input in px; for each of its grids, the cells per side and boxes per cell.
_LAYOUTS = {SHORT_RANGE: (128, ((16, 2), (8, 6))), FULL_RANGE: (192, ((48, 1),))}


@record
class DetectedFace:
    """A face's score, its box (left, top, width, height in px) and its two eyes (px)."""

    score: float
    box: Numbers
    eyes: Numbers


class FaceDetector:
    """One of the models, loaded once. It finds faces from about a tenth of the picture's longer side."""

    def __init__(
        self,
        name: str,
        min_confidence: float,
        weights_folder: Path | None = None,
        providers: Sequence[Provider] = ("cpu",),
        on_fault: OnFault = lambda fault: None,
    ) -> None:
        weights = onnx_file(name, weights_folder)
        self._session = open_session(weights, providers=in_order(providers), on_fault=on_fault)
        (self._input,) = self._session.inputs
        self.input_px, grids = _LAYOUTS[name]
        self._anchors = np.concatenate([_anchors(self.input_px, cells, boxes) for cells, boxes in grids])
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
        found: list[DetectedFace] = []
        for index in np.argsort(-scores[likely], kind="stable"):
            box = boxes[index]
            if (box[2:] > 0).all() and all(_shared(box, other.box) <= OVERLAP for other in found):
                found.append(DetectedFace(score=float(scores[likely[index]]), box=box, eyes=raw[index, 2:4]))
        return found


def _anchors(side_px: int, cells: int, boxes_a_cell: int) -> Numbers:
    """Return the points from which a grid measures boxes, in px of the model's input."""
    middle = (np.arange(cells) + 0.5) * side_px / cells
    x, y = np.meshgrid(middle, middle)
    return np.repeat(np.stack([x, y], axis=-1).reshape(-1, 2), boxes_a_cell, axis=0)


def _shared(one: Numbers, other: Numbers) -> float:
    """Return the intersection over union of two boxes."""
    sides = np.minimum(one[:2] + one[2:], other[:2] + other[2:]) - np.maximum(one[:2], other[:2])
    common = float(np.prod(np.maximum(sides, 0)))
    return common / float(np.prod(one[2:]) + np.prod(other[2:]) - common)
