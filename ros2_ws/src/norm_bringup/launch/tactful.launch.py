"""Launch Tactful's nodes, one process per node.

ros2 launch norm_bringup tactful.launch.py params_file:=my_robot.yaml namespace:=robot1
"""

import os
from pathlib import Path

import yaml
from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, TimerAction
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode
from launch_ros.parameter_descriptions import Parameter

NAMESPACE = "tactful"
# How long a node has to seal the study log and release its models; `up` waits as long.
END_TIMEOUT_S = "30.0"
# How long after the end of a node it is started again.
RESPAWN_DELAY_S = 2.0
# A node that ends so is not started again: it has finished, cannot use its parameters, or another took its place.
FINAL_EXIT_CODES = {0, 2, 4}


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments, and start one process for each node named in `nodes`."""
    defaults = Path(get_package_share_directory("norm_bringup"), "config/tactful.yaml")
    arguments = {
        "nodes": ("camera,ears,monitor,selector", "nodes to start, with commas between"),
        "params_file": (str(defaults), "YAML file of parameters; its /tactful sections follow the namespace"),
        "namespace": ("", "namespace of this robot, above /tactful and below a pushed one"),
        "use_sim_time": ("false", "whether the time is that of /clock"),
        "log_level": ("info", "debug, info, warn, error or fatal"),
        "respawn": ("false", "whether a node that dies is started again; never after the exit codes 0, 2 and 4"),
        "activate": ("true", "false: leave the nodes unconfigured, for a lifecycle manager"),
    }
    declared = [
        DeclareLaunchArgument(name, default_value=value, description=text) for name, (value, text) in arguments.items()
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=_start)])


def _start(context: LaunchContext) -> list[object]:
    def read_argument(name: str) -> str:
        return str(LaunchConfiguration(name).perform(context))

    if not Path(read_argument("params_file")).is_file():  # launch would warn, and run the nodes on their defaults
        raise RuntimeError(
            f"params_file: {read_argument('params_file')}: there is no such file; name one, or write it with "
            "`tactful up FILE --init`"
        )
    pushed = str(context.launch_configurations.get("ros_namespace", ""))
    above = "/".join(part for part in (*pushed.split("/"), *read_argument("namespace").split("/")) if part)
    file = _write_below(Path(read_argument("params_file")), above) if above else read_argument("params_file")
    # As arguments, because launch writes a dictionary to a file that stays.
    clock = [Parameter("use_sim_time", True)] if read_argument("use_sim_time").lower() == "true" else []
    # Each host brings its own node to active. By events, a node that was killed would not become active again: launch
    # sends its request to the dead one, which DDS lists for a while, and waits for ever.
    options = ["--autostart"] if read_argument("activate").lower() == "true" else []

    def make_node(name: str) -> LifecycleNode:
        def respawn(event: ProcessExited, context: LaunchContext) -> TimerAction | None:
            if context.is_shutdown or event.returncode in FINAL_EXIT_CODES:
                return None
            return TimerAction(period=RESPAWN_DELAY_S, actions=[make_node(name)])

        return LifecycleNode(
            package="norm_nodes",
            executable="host",
            arguments=[name, *options],
            name=name,
            namespace="/".join(filter(None, (read_argument("namespace").strip("/"), NAMESPACE))),
            parameters=[file, *clock],
            ros_arguments=["--log-level", read_argument("log_level")],
            on_exit=respawn if read_argument("respawn").lower() == "true" else None,
            sigterm_timeout=END_TIMEOUT_S,
            sigkill_timeout=END_TIMEOUT_S,
            output="screen",
        )

    return [make_node(name) for name in read_argument("nodes").replace(",", " ").split()]


def _write_below(file: Path, above: str) -> str:
    """Write a copy of the file whose /tactful sections stand below a namespace, as those of Nav2 do."""
    tree = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    renamed = {name: f"/{above}/{name.strip('/')}" for name in tree if name.strip("/").split("/")[0] == NAMESPACE}
    moved = {renamed.get(name, name): values for name, values in tree.items()}
    copy = os.memfd_create("tactful.yaml")  # nothing of it stays, however this process ends
    with os.fdopen(copy, "w", encoding="utf-8", closefd=False) as stream:
        yaml.safe_dump(moved, stream, sort_keys=False)
    return f"/proc/{os.getpid()}/fd/{copy}"  # a restarted node reads it again
