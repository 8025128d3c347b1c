"""Starts Tactful's nodes, each in a process of its own, and drives them to active.

ros2 launch norm_bringup tactful.launch.py nodes:=bag_recorder parameters:=my_robot.yaml
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, EmitEvent, LogInfo, OpaqueFunction, RegisterEventHandler
from launch.events import matches_action
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode
from launch_ros.event_handlers import OnStateTransition
from launch_ros.events.lifecycle import ChangeState
from lifecycle_msgs.msg import Transition

NAMESPACE = "tactful"


def generate_launch_description() -> LaunchDescription:
    defaults = Path(get_package_share_directory("norm_bringup"), "config/tactful.yaml")
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "nodes", default_value="bag_recorder", description="nodes to start, with commas between"
            ),
            DeclareLaunchArgument("parameters", default_value=str(defaults), description="YAML file of parameters"),
            DeclareLaunchArgument("bag", default_value="", description="bag of bag_player or bag_recorder"),
            DeclareLaunchArgument("activate", default_value="true", description="false: leave them unconfigured"),
            OpaqueFunction(function=_start),
        ]
    )


def _start(context: LaunchContext) -> list[object]:
    names = LaunchConfiguration("nodes").perform(context).replace(",", " ").split()
    bag = LaunchConfiguration("bag").perform(context)
    activate = LaunchConfiguration("activate").perform(context) == "true"
    actions: list[object] = []
    for name in names:
        parameters: list[object] = [LaunchConfiguration("parameters").perform(context)]
        if bag and name.startswith("bag_"):
            parameters.append({"bag": bag})
        node = LifecycleNode(
            package="norm_nodes",
            executable="host",
            arguments=[name],
            name=name,
            namespace=NAMESPACE,
            parameters=parameters,
            output="screen",
        )
        actions += [node, *(_to_active(name, node) if activate else [])]
    return actions


def _to_active(name: str, node: LifecycleNode) -> list[object]:
    def change(transition_id: int) -> EmitEvent:
        return EmitEvent(event=ChangeState(lifecycle_node_matcher=matches_action(node), transition_id=transition_id))

    configured = OnStateTransition(
        target_lifecycle_node=node,
        start_state="configuring",
        goal_state="inactive",
        entities=[change(Transition.TRANSITION_ACTIVATE)],
    )
    active = OnStateTransition(
        target_lifecycle_node=node, goal_state="active", entities=[LogInfo(msg=f"{name} is active")]
    )
    return [
        RegisterEventHandler(configured),
        RegisterEventHandler(active),
        change(Transition.TRANSITION_CONFIGURE),
    ]
