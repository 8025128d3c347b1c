"""The bench's monitor gets active, publishes, and ends clean."""

# launch_testing is not among the wheels.
# mypy: ignore-errors

import sys
import unittest
from importlib import import_module
from typing import Any

import launch_testing
from launch import LaunchDescription
from launch.actions import ExecuteProcess
from launch_testing.actions import ReadyToTest
from launch_testing.asserts import assertExitCodes
from launch_testing_ros import WaitForTopics
from std_msgs.msg import Bool

TIMEOUT_S = 300.0


def generate_test_description() -> LaunchDescription:
    """Start the monitor."""
    try:
        import_module("norm_nodes")
    except ImportError as error:  # without the Python package tactful, as where a distribution builds this
        raise unittest.SkipTest(str(error)) from error
    command = [sys.executable, "-m", "norm_bench.replay_host", "monitor", "--autostart"]
    return LaunchDescription([ExecuteProcess(cmd=command), ReadyToTest()])


class TestActive(unittest.TestCase):
    """While the monitor runs."""

    def test_publishes(self) -> None:
        """Only an active monitor publishes attention."""
        with WaitForTopics([("/tactful/attention", Bool)], timeout=TIMEOUT_S):
            pass


@launch_testing.post_shutdown_test()
class TestEnd(unittest.TestCase):
    """Once the monitor has ended."""

    def test_exit_code(self, proc_info: Any) -> None:
        """SIGINT is a clean end."""
        assertExitCodes(proc_info)
