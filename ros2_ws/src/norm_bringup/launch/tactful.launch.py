"""Launch Tactful's nodes, one process per node.

ros2 launch norm_bringup tactful.launch.py nodes:=bag_recorder parameters:=my_robot.yaml
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode

NAMESPACE = "tactful"


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments, and start one process for each node named in `nodes`."""
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
        # The host process brings its own node to active. On a busy machine, launch can miss the published state change
        # and wait for ever.
        actions.append(
            LifecycleNode(
                package="norm_nodes",
                executable="host",
                arguments=[name, *(["--autostart"] if activate else [])],
                name=name,
                namespace=NAMESPACE,
                parameters=parameters,
                output="screen",
            )
        )
    return actions
