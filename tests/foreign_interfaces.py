"""Message packages of other projects, written as they define them and built in a prefix of the test's own."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

QUICK_BUILD = Path(__file__).resolve().parents[1] / "ros2_ws/quick_build"  # as ./tactful builds packages
_PACKAGE = """<?xml version="1.0"?>
<package format="3">
  <name>{name}</name><version>0.0.0</version><description>Definitions for tests.</description>
  <maintainer email="tests@example.org">Tests</maintainer><license>Apache-2.0</license>
  <buildtool_depend>ament_cmake</buildtool_depend>
  <buildtool_depend>rosidl_default_generators</buildtool_depend>
  <depend>std_msgs</depend>
  <depend>geometry_msgs</depend>
  <member_of_group>rosidl_interface_packages</member_of_group>
  <export><build_type>ament_cmake</build_type></export>
</package>
"""
_CMAKE = """cmake_minimum_required(VERSION 3.20)
project({name})
find_package(ament_cmake REQUIRED)
find_package(rosidl_default_generators REQUIRED)
find_package(std_msgs REQUIRED)
find_package(geometry_msgs REQUIRED)
# Nodes in Python use none of these.
list(FILTER AMENT_EXTENSIONS_rosidl_generate_idl_interfaces EXCLUDE REGEX "introspection_cpp|rosidl_typesupport_cpp:")
rosidl_generate_interfaces(${{PROJECT_NAME}} {files} DEPENDENCIES std_msgs geometry_msgs)
ament_package()
"""

Definitions = Mapping[str, Mapping[str, str]]  # package, then message, then its text

PEOPLE: Definitions = {
    "hri_msgs": {
        "IdsList": "std_msgs/Header header\nstring[] ids",
        "EngagementLevel": "std_msgs/Header header\nuint8 level",
        "Gaze": "std_msgs/Header header\nstring sender\nstring receiver",
    },
    "tf2_msgs": {"TFMessage": "geometry_msgs/TransformStamped[] transforms"},
}
ROS_DRIVERS: Definitions = {
    "audio_common_msgs": {
        "AudioData": "uint8[] data",
        "AudioDataStamped": "std_msgs/Header header\naudio_common_msgs/AudioData audio",
        "AudioInfo": "uint8 channels\nuint32 sample_rate\nstring sample_format\nuint32 bitrate\nstring coding_format",
    },
    "hri_msgs": {
        "IdsMatch": "string id1\nint8 id1_type\nstring id2\nint8 id2_type\nfloat32 confidence",
        "LiveSpeech": "std_msgs/Header header\nstring incremental\nstring final\nfloat64 confidence\nstring locale",
        **PEOPLE["hri_msgs"],
    },
    "tf2_msgs": PEOPLE["tf2_msgs"],
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


def build_once(factory: pytest.TempPathFactory, definitions: Definitions) -> Path:
    """The prefix with these packages, which all workers of pytest-xdist share."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    folder = root / f"interfaces-{hashlib.sha256(repr(definitions).encode()).hexdigest()[:12]}"
    with Path(f"{folder}.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            build(folder.with_suffix(".part"), definitions, folder)
        return folder


def build(folder: Path, definitions: Definitions, prefix: Path) -> None:
    """Build these packages into the prefix; skip the test where they cannot be built."""
    if shutil.which("colcon") is None:
        pytest.skip("colcon is not here, which builds the definitions of other packages")
    for package, messages in definitions.items():
        source = folder / "src" / package
        (source / "msg").mkdir(parents=True)
        for name, text in messages.items():
            (source / f"msg/{name}.msg").write_text(text + "\n", encoding="utf-8")
        files = " ".join(f'"msg/{name}.msg"' for name in messages)
        (source / "package.xml").write_text(_PACKAGE.format(name=package), encoding="utf-8")
        (source / "CMakeLists.txt").write_text(_CMAKE.format(name=package, files=files), encoding="utf-8")
    command = ["colcon", "--log-base", str(folder / "log"), "build", "--base-paths", str(folder / "src")]
    command += ["--build-base", str(folder / "build"), "--install-base", str(prefix), "--merge-install"]
    command += [
        "--cmake-args",
        "-DBUILD_TESTING=OFF",
        "-DCMAKE_CXX_FLAGS=-O0 -g0",
        "-DCMAKE_C_FLAGS=-O0 -g0",
        f"-DPython3_EXECUTABLE={sys.executable}",
        "--no-warn-unused-cli",
        f"-DCMAKE_PROJECT_INCLUDE={QUICK_BUILD / 'few_sources.cmake'}",
    ]
    environment = os.environ | {
        "PARSED_INTERFACES": str(folder / "parsed"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(QUICK_BUILD), os.environ.get("PYTHONPATH", "")])),
    }
    built = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert built.returncode == 0, built.stdout[-2_000:] + built.stderr[-2_000:]


def environment(prefix: Path) -> dict[str, str]:
    """What makes a prefix visible to a process."""
    (packages,) = prefix.glob("lib/python3.*/site-packages")

    def before(name: str, folder: Path) -> str:
        return os.pathsep.join(filter(None, [str(folder), os.environ.get(name, "")]))

    return {
        "PYTHONPATH": before("PYTHONPATH", packages),
        "AMENT_PREFIX_PATH": before("AMENT_PREFIX_PATH", prefix),
        "LD_LIBRARY_PATH": before("LD_LIBRARY_PATH", prefix / "lib"),
    }
