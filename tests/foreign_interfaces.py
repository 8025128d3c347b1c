"""Message packages of other projects, written as they define them and built in a prefix of the tests' own."""

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

Definitions = Mapping[str, Mapping[str, str]]  # package, then message, then its text

ROOT = Path(__file__).resolve().parents[1]
HRI: Definitions = {
    "hri_msgs": {
        "IdsList": "std_msgs/Header header\nstring[] ids",
        "EngagementLevel": "std_msgs/Header header\nuint8 level",
        "Gaze": "std_msgs/Header header\nstring sender\nstring receiver",
        "IdsMatch": "string id1\nint8 id1_type\nstring id2\nint8 id2_type\nfloat32 confidence",
        "LiveSpeech": "std_msgs/Header header\nstring incremental\nstring final\nfloat64 confidence\nstring locale",
        "NormalizedRegionOfInterest2D": "std_msgs/Header header\nfloat32 xmin\nfloat32 ymin\nfloat32 xmax\n"
        "float32 ymax\nfloat32 c",
    },
}
PEOPLE: Definitions = {**HRI, "tf2_msgs": {"TFMessage": "geometry_msgs/TransformStamped[] transforms"}}
BOND: Definitions = {
    "bond": {
        "Status": "std_msgs/Header header\nstring id\nstring instance_id\nbool active\nfloat32 heartbeat_timeout\n"
        "float32 heartbeat_period",
        "Constants": "float32 DEAD_PUBLISH_PERIOD=0.05\nfloat32 DEFAULT_CONNECT_TIMEOUT=10.0\n"
        "float32 DEFAULT_HEARTBEAT_TIMEOUT=4.0\nfloat32 DEFAULT_DISCONNECT_TIMEOUT=2.0\n"
        "float32 DEFAULT_HEARTBEAT_PERIOD=1.0\n"
        "string DISABLE_HEARTBEAT_TIMEOUT_PARAM=/bond_disable_heartbeat_timeout",
    },
}
MARKERS: Definitions = {
    "visualization_msgs": {
        "UVCoordinate": "float32 u\nfloat32 v",
        "MeshFile": "string filename\nuint8[] data",
        "Marker": "int32 ADD=0\nint32 DELETE=2\nint32 TEXT_VIEW_FACING=9\nstd_msgs/Header header\nstring ns\nint32 id\n"
        "int32 type\nint32 action\ngeometry_msgs/Pose pose\ngeometry_msgs/Vector3 scale\nstd_msgs/ColorRGBA color\n"
        "builtin_interfaces/Duration lifetime\nbool frame_locked\ngeometry_msgs/Point[] points\n"
        "std_msgs/ColorRGBA[] colors\nstring texture_resource\nsensor_msgs/CompressedImage texture\n"
        "UVCoordinate[] uv_coordinates\nstring text\nstring mesh_resource\nMeshFile mesh_file\n"
        "bool mesh_use_embedded_materials",
        "MarkerArray": "Marker[] markers",
    },
}
ROS_DRIVERS: Definitions = {
    **PEOPLE,
    "audio_common_msgs": {
        "AudioData": "uint8[] data",
        "AudioDataStamped": "std_msgs/Header header\naudio_common_msgs/AudioData audio",
        "AudioInfo": "uint8 channels\nuint32 sample_rate\nstring sample_format\nuint32 bitrate\nstring coding_format",
    },
    "hri_actions_msgs": {
        "ClosedCaption": "std_msgs/Header header\nstring speaker_id\nstring text\nstring locale",
    },
    "sound_play": {
        "SoundRequest": "int8 sound\nint8 command\nfloat32 volume\nstring arg\nstring arg2",
    },
}
NAOQI: Definitions = {
    "naoqi_bridge_msgs": {"AudioBuffer": "std_msgs/Header header\nuint16 frequency\nuint8[] channel_map\nint16[] data"},
}


def build_once(factory: pytest.TempPathFactory, definitions: Definitions) -> list[Path]:
    """The prefix of each package, which all tests and all workers of pytest-xdist share."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    prefixes: list[Path] = []
    for package, messages in definitions.items():
        digest = hashlib.sha256(repr(messages).encode()).hexdigest()[:12]
        prefix = root / f"interfaces-{package}-{digest}"
        with Path(f"{prefix}.lock").open("w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not prefix.is_dir():
                part = Path(f"{prefix}.part")
                # The generators replace the standard output of their process.
                command = [sys.executable, "-m", "tests.message_package", package, str(part), f"{prefix}.code"]
                built = subprocess.run(
                    command,
                    input=json.dumps(messages),
                    capture_output=True,
                    text=True,
                    timeout=PATIENCE_S,
                    check=False,
                    cwd=ROOT,
                )
                assert built.returncode == 0, built.stderr[-2_000:]
                part.rename(prefix)
        prefixes.append(prefix)
    return prefixes


def site_packages(prefix: Path) -> Path:
    """The folder of Python modules in a prefix."""
    return prefix / Path(sysconfig.get_path("platlib")).relative_to(sys.prefix)


def environment(prefixes: Iterable[Path]) -> dict[str, str]:
    """What makes the packages in prefixes visible to a process."""
    folders = list(prefixes)

    def before(name: str, added: Iterable[Path]) -> str:
        return os.pathsep.join(filter(None, [*map(str, added), os.environ.get(name, "")]))

    return {
        "PYTHONPATH": before("PYTHONPATH", map(site_packages, folders)),
        "AMENT_PREFIX_PATH": before("AMENT_PREFIX_PATH", folders),
        "LD_LIBRARY_PATH": before("LD_LIBRARY_PATH", (folder / "lib" for folder in folders)),
    }
