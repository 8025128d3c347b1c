"""The offsets of camera stamps and robot speech stamps from those of the microphone."""

from collections.abc import Iterable
from typing import Self

from pydantic import Field

from norm_core.runtime.artefact import Artefact, artefact_path, load_artefact
from norm_core.runtime.config import ConfigError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import NS_PER_MS

KIND, FORMAT = "sensor offsets", 1
CAMERA, MICROPHONE, ROBOT_SPEECH = "camera topic", "microphone topic", "robot speech topics"
_REMEDY = f"measure anew ({PROGRAM} calibrate sensors BAG --write NAME)"


class SensorOffsets(Artefact):
    """The offsets to add to stamps to align them with the microphone, with 95 % uncertainties; None: unknown."""

    camera_ms: float | None = Field(default=None, ge=-2000, le=2000)
    camera_uncertainty_ms: float | None = None
    robot_speech_ms: float | None = Field(default=None, ge=-2000, le=2000)
    robot_speech_uncertainty_ms: float | None = None

    @classmethod
    def load(cls, name: str, **made_with: str) -> Self:
        """Load the artefact that a setting names; raise ConfigError if it was made for other topics."""
        return load_artefact(cls, artefact_path(name), kind=KIND, format_=FORMAT, made_with=made_with, remedy=_REMEDY)

    @classmethod
    def camera_ns(cls, name: str, topic: str) -> int:
        """Return the offset of a camera's stamps; 0 if no file is named."""
        if not name:
            return 0
        offsets = cls.load(name, **{CAMERA: topic})
        return _known_ns(offsets.camera_ms, name, "the camera", "clap or --from flash")

    @classmethod
    def of_replay(cls, name: str, camera: str = "", robot_speech: str = "") -> tuple[int, int | None]:
        """Return the offsets of a camera and of the robot's speech in a replay, as far as the file holds them."""
        if not name:
            return 0, None
        offsets = cls.load(name)
        camera_ns = 0 if offsets.camera_ms is None or not camera else cls.camera_ns(name, camera)
        has_robot = offsets.robot_speech_ms is not None and robot_speech
        robot_ns = cls.robot_speech_ns(name, robot_speech) if has_robot else None
        return camera_ns, robot_ns

    @classmethod
    def robot_speech_ns(cls, name: str, topics: str) -> int | None:
        """Return the offset of the robot's speech; None if no file is named."""
        if not name:
            return None
        offsets = cls.load(name, **{ROBOT_SPEECH: topics})
        return _known_ns(offsets.robot_speech_ms, name, "the robot's speech", "speech")


def listed(topics: Iterable[str]) -> str:
    """Return topics as an artefact names them."""
    return ", ".join(sorted(set(topics)))


def _known_ns(offset_ms: float | None, name: str, source: str, method: str) -> int:
    if offset_ms is None:
        why = f"holds no offset of {source}; measure it (--from {method}), or leave sensor_offsets empty"
        raise ConfigError(f"{artefact_path(name)}: {why}")
    return round(offset_ms * NS_PER_MS)
