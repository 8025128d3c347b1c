"""Print each heartbeat on a status topic as one line of JSON, until whoever started this has gone."""

import argparse
import os
import sys

import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from norm_core.records.json_codec import to_json
from norm_core.records.messages import MessageError
from norm_core.records.status import MonitorStatus
from norm_nodes.convert import from_ros, record_class
from norm_nodes.heartbeat import STATUS_QOS

SPIN_S = 0.5


def main() -> int:
    """Print heartbeats."""
    parser = argparse.ArgumentParser(prog="status_lines", description=__doc__)
    parser.add_argument("topic", help="status topic, such as /tactful/status")
    topic = parser.parse_args().topic
    parent = os.getppid()
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = Node(f"up_status_{os.getpid()}", enable_rosout=False, start_parameter_services=False)
        node.create_subscription(record_class(MonitorStatus), topic, _print, STATUS_QOS)
        while os.getppid() == parent:
            rclpy.spin_once(node, timeout_sec=SPIN_S)
    except BrokenPipeError:
        pass
    finally:
        rclpy.try_shutdown()
    return 0


def _print(message: object) -> None:
    try:
        print(to_json(from_ros(MonitorStatus, message)), flush=True)
    except MessageError:  # of another version
        return


if __name__ == "__main__":
    sys.exit(main())
