"""Stills of a bag's camera: the right picture, with no face in it."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from norm_core.bags.writer import BagWriter
from norm_core.records.presence import Face
from norm_core.runtime.time import NS_PER_S
from study_desk.privacy.blur import Pixels
from study_desk.report.pictures import BagStills
from tests.node_records import camera_frame

START_NS = 1_000 * NS_PER_S
LEFT_HALF = Face(left_ratio=0, top_ratio=0, width_ratio=0.4, height_ratio=1, confidence=1)


def picture(second: int) -> Pixels:
    """Return fine stripes, which no blur leaves, of a brightness that tells the second."""
    stripes = np.zeros((240, 320, 3), np.uint8)
    stripes[:, ::4] = stripes[:, 1::4] = 75 + 20 * second
    return stripes


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """Return a bag with a picture at 0, 1 and 2 s, and another at 9 s."""
    with BagWriter(tmp_path / "bag") as writer:
        for second in (0, 1, 2, 9):
            stamp_ns = START_NS + second * NS_PER_S
            tile = cv2.imencode(".jpg", picture(second))[1].tobytes()
            frame = camera_frame(stamp_ns, tile)
            writer.write("/tactful/frames", frame, stamp_ns)
    return tmp_path / "bag"


def shown(stills: BagStills, second: float) -> Pixels:
    still = stills.at(START_NS + round(second * NS_PER_S))
    assert still is not None
    return np.asarray(cv2.imdecode(np.frombuffer(still, np.uint8), cv2.IMREAD_COLOR), np.uint8)


def contrast(part: Pixels) -> float:
    """Return how strong the stripes are."""
    return float(part.std())


def test_it_is_the_last_picture_before_the_moment(bag: Path) -> None:
    stills = BagStills(bag, None, shows_faces=True)
    brightness = [shown(stills, second).max() // 20 for second in (0, 0.9, 1.0, 2.9, 9.5)]
    assert brightness == [picture(second).max() // 20 for second in (0, 0, 1, 2, 9)]


def test_a_moment_without_a_picture_near_has_none(bag: Path) -> None:
    stills = BagStills(bag, None, shows_faces=True)
    assert [stills.at(START_NS + second * NS_PER_S) for second in (-5, 6, 60)] == [None, None, None]


def test_the_found_faces_are_blurred_and_the_rest_is_not(bag: Path) -> None:
    still = shown(BagStills(bag, lambda image: [LEFT_HALF]), 1)
    assert contrast(still[:, :120]) < 20
    assert contrast(still[:, 220:]) > 40


def test_without_a_face_detector_the_whole_picture_is_blurred(bag: Path) -> None:
    assert contrast(shown(BagStills(bag, None), 1)) < 20


def test_a_bag_without_a_camera_has_no_stills(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag"):
        pass
    stills = BagStills(tmp_path / "bag", None)
    assert (stills.topic, stills.at(START_NS)) == (None, None)
