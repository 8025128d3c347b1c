"""Test the launch file: the nodes become active, send heartbeats and end with exit code 0."""

import tempfile
import unittest
from pathlib import Path

import launch_testing
import launch_testing.actions
import launch_testing.asserts
import launch_testing.markers
import pytest
import rclpy
from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from norm_interfaces.msg import MonitorStatus

LAUNCH = Path(__file__).resolve().parents[1] / "launch/tactful.launch.py"
PATIENCE_S = 500.0  # a guard against hangs, and less than that of the test that starts this file


@pytest.mark.launch_test
@launch_testing.markers.keep_alive
def generate_test_description() -> LaunchDescription:
    """Start a recorder by the launch file, with a new bag."""
    bag = f"{tempfile.mkdtemp(prefix='tactful-launch-test-')}/bag"
    source = PythonLaunchDescriptionSource(str(LAUNCH))
    started = IncludeLaunchDescription(source, launch_arguments=[("nodes", "bag_recorder"), ("bag", bag)])
    return LaunchDescription([started, launch_testing.actions.ReadyToTest()])


class TestRunning(unittest.TestCase):
    """What holds while the recorder runs."""

    def test_the_recorder_becomes_active_and_beats(self) -> None:
        """Wait for a status of an active node."""
        rclpy.init()
        try:
            node = rclpy.create_node("bringup_test")
            statuses: list[MonitorStatus] = []
            node.create_subscription(MonitorStatus, "/tactful/status", statuses.append, 10)
            for _ in range(int(PATIENCE_S / 0.1)):
                rclpy.spin_once(node, timeout_sec=0.1)
                if any(status.state == MonitorStatus.STATE_ACTIVE for status in statuses):
                    return
            self.fail(f"no heartbeat of an active node came in {PATIENCE_S:.0f} s")
        finally:
            rclpy.shutdown()


@launch_testing.post_shutdown_test()
class TestEnded(unittest.TestCase):
    """What holds after the launch has ended."""

    def test_every_process_ended_clean(self, proc_info: launch_testing.ActiveProcInfoHandler) -> None:
        """Check that every process ended with 0."""
        launch_testing.asserts.assertExitCodes(proc_info)
