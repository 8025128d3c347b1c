"""Print heartbeats of a topic and, with --settings, changed parameters, as lines of JSON, until the parent ends."""

import json
import os
import sys
from contextlib import suppress

import rclpy
from rcl_interfaces.msg import ParameterEvent
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import qos_profile_parameter_events

from norm_core.records.json_codec import to_json
from norm_core.records.messages import MessageError
from norm_core.records.status import MonitorStatus
from norm_nodes.base.convert import from_ros, record_class
from norm_nodes.base.endpoint import STATUS_QOS
from norm_nodes.base.executors import open_observer

# How long the node spins before the program checks whether its parent has ended.
SPIN_S = 0.5


def main() -> int:
    """Print heartbeats."""
    topic, *options = sys.argv[1:]
    parent = os.getppid()
    with suppress(BrokenPipeError), open_observer("up_status") as node:
        node.create_subscription(record_class(MonitorStatus), topic, _print, STATUS_QOS)
        if "--settings" in options:
            node.create_subscription(ParameterEvent, "/parameter_events", _print_settings, qos_profile_parameter_events)
        while os.getppid() == parent:
            rclpy.spin_once(node, timeout_sec=SPIN_S)
    return 0


def _print(message: object) -> None:
    try:
        print(to_json(from_ros(MonitorStatus, message)), flush=True)
    except MessageError:
        return  # the heartbeat of another version of Tactful


def _print_settings(event: ParameterEvent) -> None:
    changed = {parameter.name: parameter_value_to_python(parameter.value) for parameter in event.changed_parameters}
    if changed:
        print(json.dumps({"node": event.node, "settings": changed}, default=list), flush=True)


if __name__ == "__main__":
    sys.exit(main())
