"""Compose test images with faces of known sizes from scikit-image's photograph."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np

WIDTH_PX, HEIGHT_PX = 1280, 720
# Centre and width of the face in the photograph.
_FACE_X_PX, _FACE_Y_PX, _FACE_PX = 227, 125, 94


def photograph(name: str) -> Any:
    """Load an image of scikit-image's wheel, in BGR."""
    spec = find_spec("skimage")
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"{name}: its package is not installed; install scikit-image")
    return cv2.imread(str(Path(spec.origin).parent / "data" / name))


def room(seed: int) -> Any:
    """Draw an image without people: large shapes, edges and grain."""
    generator = np.random.default_rng(seed)
    small = generator.integers(30, 220, (9, 16, 3), np.uint8)
    image = cv2.resize(small, (WIDTH_PX, HEIGHT_PX), interpolation=cv2.INTER_CUBIC)
    for _ in range(12):
        x, y = int(generator.integers(WIDTH_PX)), int(generator.integers(HEIGHT_PX))
        colour = [int(value) for value in generator.integers(0, 255, 3)]
        cv2.rectangle(image, (x, y), (x + int(generator.integers(20, 300)), y + 120), colour, -1)
    return np.clip(image + generator.normal(0, 6, image.shape), 0, 255).astype(np.uint8)


def with_face(  # noqa: PLR0917
    image: Any, width_px: float, x_px: float, y_px: float, tilt_deg: float, brightness: float
) -> Any:
    """Paste the photograph's head into an image, with the given face width and centre."""
    zoom = width_px / _FACE_PX
    source = photograph("astronaut.png")
    if zoom < 1:
        source = cv2.GaussianBlur(source, (0, 0), 0.5 / zoom)
    place = cv2.getRotationMatrix2D((_FACE_X_PX, _FACE_Y_PX), tilt_deg, zoom)
    place[:, 2] += np.array([x_px - _FACE_X_PX, y_px - _FACE_Y_PX])
    head = cv2.warpAffine(source, place, image.shape[1::-1], borderMode=cv2.BORDER_REPLICATE)
    mask = np.zeros(image.shape[:2], np.float32)
    axes = round(width_px * 0.8), round(width_px)
    cv2.ellipse(mask, (round(x_px), round(y_px)), axes, -tilt_deg, 0, 360, 1.0, -1)
    mask = cv2.GaussianBlur(mask, (0, 0), max(0.6, width_px * 0.05))[..., np.newaxis]
    return np.clip(mask * head * brightness + (1 - mask) * image, 0, 255).astype(np.uint8)
