"""Two nodes of one host get active, publish, and end clean."""

# launch_testing is not among the wheels.
# mypy: ignore-errors

import unittest
from importlib import import_module
from typing import Any

import launch_testing
from launch import LaunchDescription
from launch_ros.actions import Node
from launch_testing.actions import ReadyToTest
from launch_testing.asserts import assertExitCodes
from launch_testing_ros import WaitForTopics
from norm_interfaces.msg import MonitorStatus
from std_msgs.msg import Bool

TIMEOUT_S = 300.0


def generate_test_description() -> LaunchDescription:
    """Start the nodes."""
    try:
        import_module("norm_nodes")
    except ImportError as error:  # without the Python package tactful, as where a distribution builds this
        raise unittest.SkipTest(str(error)) from error
    host = Node(package="norm_nodes", executable="host", arguments=["camera", "monitor", "--autostart"])
    return LaunchDescription([host, ReadyToTest()])


class TestActive(unittest.TestCase):
    """While the nodes run."""

    def test_publishes(self) -> None:
        """Only an active monitor publishes attention."""
        with WaitForTopics([("/tactful/attention", Bool), ("/tactful/status", MonitorStatus)], timeout=TIMEOUT_S):
            pass


@launch_testing.post_shutdown_test()
class TestEnd(unittest.TestCase):
    """Once the nodes have ended."""

    def test_exit_code(self, proc_info: Any) -> None:
        """SIGINT is a clean end."""
        assertExitCodes(proc_info)
