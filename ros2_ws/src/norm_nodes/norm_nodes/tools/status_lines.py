"""Print heartbeats of a topic as lines of JSON, until the parent ends.

With --all, print also changed parameters, flags, and who has spoken, but never the words.
"""

import json
import os
import sys
from contextlib import suppress
from functools import partial
from typing import Any

import rclpy
from rcl_interfaces.msg import ParameterEvent
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import qos_profile_parameter_events

from norm_core.records.flag import SocialFlag
from norm_core.records.json_codec import to_json, to_plain
from norm_core.records.messages import MessageError
from norm_core.records.speech import Utterance
from norm_core.records.status import MonitorStatus
from norm_core.records.topics import FLAGS_TOPIC, SHADOW, UTTERANCES_TOPIC
from norm_nodes.base.convert import from_ros, record_class
from norm_nodes.base.endpoint import EVENTS, SPEECH, STATUS_QOS
from norm_nodes.base.executors import open_observer

# How long the node spins before the program checks whether its parent has ended.
_SPIN_S = 0.5


def main() -> int:
    """Print heartbeats."""
    topic, *options = sys.argv[1:]
    parent = os.getppid()
    with suppress(BrokenPipeError), open_observer("up_status") as node:
        node.create_subscription(record_class(MonitorStatus), topic, partial(_print_record, MonitorStatus), STATUS_QOS)
        if "--all" in options:
            namespace = topic.rpartition("/")[0]
            node.create_subscription(ParameterEvent, "/parameter_events", _print_settings, qos_profile_parameter_events)
            for name in (FLAGS_TOPIC, SHADOW + FLAGS_TOPIC):
                print_flag = partial(_print_record, SocialFlag)
                node.create_subscription(record_class(SocialFlag), f"{namespace}/{name}", print_flag, EVENTS)
            utterances = f"{namespace}/{UTTERANCES_TOPIC}"
            node.create_subscription(record_class(Utterance), utterances, partial(_print_record, Utterance), SPEECH)
        while os.getppid() == parent:
            rclpy.spin_once(node, timeout_sec=_SPIN_S)
    return 0


def _print_record(record_type: type, message: object) -> None:
    """Print a record; a message of another version is left out."""
    with suppress(MessageError):
        record: Any = from_ros(record_type, message)
        if isinstance(record, MonitorStatus):
            print(to_json(record), flush=True)
        elif isinstance(record, SocialFlag):
            print(json.dumps({"flag": to_plain(record)}), flush=True)
        elif record.final and record.text.strip():
            print(json.dumps({"speaker": record.speaker, "speaker_id": record.speaker_id}), flush=True)


def _print_settings(event: ParameterEvent) -> None:
    """Print the changed parameters of a node."""
    changed = {parameter.name: parameter_value_to_python(parameter.value) for parameter in event.changed_parameters}
    if changed:
        print(json.dumps({"node": event.node, "settings": changed}, default=list), flush=True)


if __name__ == "__main__":
    sys.exit(main())
