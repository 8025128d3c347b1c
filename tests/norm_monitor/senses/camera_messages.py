"""Camera messages for tests, as any ROS library would hold them."""

import math
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from norm_monitor.senses.camera.picture import Picture

START_NS = 1_767_225_600_000_000_000
PERIOD_NS = 33_333_333
Pixels = NDArray[np.uint8]


def scene(width_px: int = 64, height_px: int = 48) -> Pixels:
    """Four quarters of known BGR colours."""
    image = np.zeros((height_px, width_px, 3), np.uint8)
    image[: height_px // 2, : width_px // 2] = (200, 40, 40)
    image[: height_px // 2, width_px // 2 :] = (40, 200, 40)
    image[height_px // 2 :, : width_px // 2] = (40, 40, 200)
    image[height_px // 2 :, width_px // 2 :] = (180, 180, 180)
    return image


def compressed(stamp_ns: int, image: Pixels, codec: str = "jpeg", stated: str | None = None) -> Picture:
    encoded, data = cv2.imencode(f".{codec}", image)
    assert encoded
    return Picture(stamp_ns=stamp_ns, frame_id="camera", encoding=stated or codec, compressed=True, data=data.tobytes())


def raw(stamp_ns: int, image: Pixels, encoding: str = "bgr8") -> Picture:
    height, width = image.shape[:2]
    return Picture(
        stamp_ns=stamp_ns,
        frame_id="camera",
        encoding=encoding,
        compressed=False,
        width_px=width,
        height_px=height,
        step_bytes=image.nbytes // height,
        data=image.tobytes(),
    )


def face_image() -> Pixels:
    """A photograph of one person whose face is plainly to be seen."""
    spec = find_spec("skimage")
    path = Path(spec.origin).parent / "data/astronaut.png" if spec and spec.origin else None
    if path is None or not path.is_file():
        pytest.skip("scikit-image, whose photograph of a face is used, is not installed")
    image = cv2.imread(str(path))
    assert image is not None
    return np.asarray(image, np.uint8)


def close(value: float | None, other: float, within: float) -> bool:
    return value is not None and math.isclose(value, other, abs_tol=within)
