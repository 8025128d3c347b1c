"""The launch file as `ros2 launch` runs it, from Python, as the wheels have no ros2 command."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

LAUNCH = Path(__file__).resolve().parents[1] / "ros2_ws/src/norm_bringup/launch/tactful.launch.py"
_RUN = """
import sys
from launch import LaunchService
from launch.launch_description_sources import get_launch_description_from_python_launch_file as load
from launch.actions import IncludeLaunchDescription
from launch import LaunchDescription, LaunchDescriptionSource
from launch.actions import GroupAction
from launch_ros.actions import PushRosNamespace
arguments = [tuple(a.split(":=")) for a in sys.argv[3:]]
source = LaunchDescriptionSource(load(sys.argv[1]))
service = LaunchService()
included = IncludeLaunchDescription(source, launch_arguments=arguments)
group = GroupAction([PushRosNamespace(sys.argv[2]), included]) if sys.argv[2] else included
service.include_launch_description(LaunchDescription([group]))
sys.exit(service.run())
"""


@contextmanager
def launched(nodes: list[str], *arguments: str, pushed: str = "", given: str = "") -> Iterator[list[str]]:
    """The lines of the launch file, whose nodes are active below a namespace; it must end clean on SIGINT."""
    names = [f"nodes:={','.join(nodes)}", *([f"namespace:={given}"] if given else []), *arguments]
    command = [sys.executable, "-c", _RUN, str(LAUNCH), pushed, *names]
    launch = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said: list[str] = []
    waited_for = {f"running {pushed}{given}/tactful/{node}" for node in nodes}
    try:
        assert launch.stdout
        for line in launch.stdout:
            said.append(line)
            waited_for -= {one for one in waited_for if line.rstrip().endswith(one)}
            if not waited_for:
                break
        else:
            pytest.fail(f"it never came to {', '.join(sorted(waited_for))}: {''.join(said)}")
        yield said
    finally:
        launch.send_signal(signal.SIGINT)
        said += launch.communicate(timeout=PATIENCE_S)[0].splitlines()
    assert launch.returncode == 0, "\n".join(said)
