"""Named sensor offsets: whether they fit a profile's topics."""

from pathlib import Path

import pytest

from norm_core.runtime.artefact import write_artefact
from norm_monitor.senses.sensor_offsets import CAMERA, FORMAT, KIND, ROBOT_SPEECH, SensorOffsets
from tactful_cli.up.profile import EffectiveParameters
from tactful_cli.up.verb import offset_problems
from tests.tactful_cli.up.test_input_check import CAMERA as CAMERA_PARAMETERS
from tests.tactful_cli.up.test_input_check import EARS


@pytest.fixture
def offsets(tmp_path: Path) -> str:
    path = tmp_path / "offsets.json"
    made_with = {CAMERA: "/eye", ROBOT_SPEECH: "/says"}
    write_artefact(
        SensorOffsets(
            kind=KIND, format=FORMAT, made_on="2026-11-23", made_with=made_with, fitted_on={}, camera_ms=20.0,
            robot_speech_ms=80.0,
        ),
        path,
    )  # fmt: skip
    return str(path)


def problems(offsets: str, camera: str = "/eye", robot: str = "/says") -> list[str]:
    parameters = {
        "camera": {**CAMERA_PARAMETERS["camera"], "topic": camera, "sensor_offsets": offsets},
        "ears": {**EARS, "robot_speech_topic": robot, "robot_speaking_topic": "", "sensor_offsets": offsets},
    }
    return offset_problems(EffectiveParameters(parameters=parameters, problems=(), missing_types={}), "/tactful")


def test_offsets_of_the_same_topics_fit(offsets: str) -> None:
    assert problems(offsets) == []
    assert problems("") == []


def test_offsets_of_other_topics_are_named(offsets: str) -> None:
    (of_camera,) = problems(offsets, camera="/other")
    assert "sensor_offsets of camera" in of_camera
    (of_robot,) = problems(offsets, robot="/other")
    assert "differs from what runs here in robot speech topics" in of_robot
    assert len(problems(f"{offsets}.missing")) == 2
