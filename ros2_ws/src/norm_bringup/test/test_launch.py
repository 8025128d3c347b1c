"""A launch file that includes Tactful's brings the monitor to active by events; it publishes, and ends clean."""

# launch_testing is not among the wheels.
# mypy: ignore-errors

import unittest
from importlib import import_module
from typing import Any

import launch_testing
from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import EmitEvent, IncludeLaunchDescription, RegisterEventHandler
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.event_handlers import OnStateTransition
from launch_ros.events.lifecycle import ChangeState
from launch_testing.actions import ReadyToTest
from launch_testing.asserts import assertExitCodes
from launch_testing_ros import WaitForTopics
from lifecycle_msgs.msg import Transition
from std_msgs.msg import Bool

TIMEOUT_S = 300.0


def generate_test_description() -> LaunchDescription:
    """Configure the monitor, and activate it once it is inactive."""
    try:
        import_module("norm_nodes")
    except ImportError as error:  # without the Python package tactful, as where a distribution builds this
        raise unittest.SkipTest(str(error)) from error
    file = f"{get_package_share_directory('norm_bringup')}/launch/tactful.launch.py"
    arguments = {"nodes": "monitor", "activate": "false"}.items()
    configure, activate = (
        EmitEvent(
            event=ChangeState(
                lifecycle_node_matcher=lambda node: node.node_name == "/tactful/monitor", transition_id=transition_id
            )
        )
        for transition_id in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE)
    )
    is_configured = OnStateTransition(start_state="configuring", goal_state="inactive", entities=[activate])
    included = IncludeLaunchDescription(PythonLaunchDescriptionSource(file), launch_arguments=arguments)
    return LaunchDescription([RegisterEventHandler(is_configured), included, configure, ReadyToTest()])


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
