"""Print the topics of the ROS domain as JSON: types, publishers, reliability, rate, and their content of speech."""

import json
import sys
import time
from contextlib import suppress
from functools import partial
from typing import Any

import rclpy
from rclpy.action import get_action_names_and_types
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message

from norm_core.records.speech import SpeechContent
from norm_monitor.senses.microphone.audio_message import decode
from norm_monitor.senses.microphone.pcm import PcmFormat, SoundError
from norm_monitor.senses.robot_voice.robot_messages import detect_speech_content
from norm_nodes.base.convert import message_class
from norm_nodes.base.executors import open_observer

# Best effort and volatile matches every publisher.
_ANY = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT, durability=DurabilityPolicy.VOLATILE)
_NOT_OF_THE_ROBOT = ("/rosout", "/parameter_events")
# Large messages that no node reads. To count them would load the robot.
_NOT_COUNTED = ("sensor_msgs/msg/PointCloud2", "nav_msgs/msg/OccupancyGrid")
_BYTES = PcmFormat(sample_format="u8")
# How long the discovery of topics takes.
DISCOVERY_S = 3.0
# How long the messages of a topic are counted.
COUNTED_S = 3.0
# How long the survey takes if ever new topics appear.
MAX_SURVEY_S = 12.0
SPIN_S = 0.05
# How long the graph must stay the same to be complete.
SETTLE_S = 1.0
# How long the program waits for that.
MAX_SETTLE_S = 4.0


class TopicSurvey:
    """Subscribe to every published topic and note when messages arrive."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._arrivals_s: dict[str, list[float]] = {}  # of the topics that are counted
        self._sound_values: dict[str, int] = {}  # after the first message
        self._seen: set[str] = set()

    def subscribe_to_new(self) -> bool:
        """Subscribe to topics that appeared; return whether there were any."""
        new_topics = {topic for topic in self._find_published() if topic not in self._seen and self._find_types(topic)}
        self._seen |= new_topics
        for topic in new_topics:
            type_name = self._find_types(topic)[0]
            if type_name in _NOT_COUNTED:
                continue
            is_sound = _find_speech_content([type_name]) == SpeechContent.SOUND
            with suppress(ImportError, ValueError, RuntimeError):  # of rclpy, where SROS2 denies the topic
                type_ = message_class(type_name)
                note_arrival = partial(self._note_arrival, topic, type_ if is_sound else None)
                self._node.create_subscription(type_, topic, note_arrival, _ANY, raw=True)
                self._arrivals_s[topic] = []
        return bool(new_topics)

    def describe_topics(self) -> list[dict[str, Any]]:
        """Describe every published topic; one that is not counted has no rate."""
        return [
            {
                "name": topic,
                "types": self._find_types(topic),
                "publishers": sorted(f"{end.node_namespace.rstrip('/')}/{end.node_name}" for end in publishers),
                "reliable": all(end.qos_profile.reliability == ReliabilityPolicy.RELIABLE for end in publishers),
                "speech_content": _find_speech_content(self._find_types(topic)),
                "rate_hz": _compute_rate_hz(self._arrivals_s[topic]) if topic in self._arrivals_s else None,
                "sound_values": self._sound_values.get(topic, 0),
                "sound_s": _compute_length_s(self._arrivals_s.get(topic, [])),
            }
            for topic in sorted(self._find_published())
            for publishers in (self._node.get_publishers_info_by_topic(topic),)
        ]

    def _find_published(self) -> list[str]:
        names = (topic for topic, _ in self._node.get_topic_names_and_types())
        return [topic for topic in names if topic not in _NOT_OF_THE_ROBOT and self._node.count_publishers(topic)]

    def _find_types(self, topic: str) -> list[str]:
        return sorted({end.topic_type for end in self._node.get_publishers_info_by_topic(topic)})

    def _note_arrival(self, topic: str, sound_type: Any, data: bytes) -> None:
        if sound_type and self._arrivals_s[topic]:
            with suppress(SoundError):  # as compressed sound, which ears refuses with its remedy
                values = len(decode(deserialize_message(data, sound_type), _BYTES).samples)
                self._sound_values[topic] = self._sound_values.get(topic, 0) + values
        self._arrivals_s[topic].append(time.monotonic())


def list_graph(node: Node) -> dict[str, Any]:
    """List the graph that `node` sees now, with the types of topics, services and actions."""
    names = {f"{space.rstrip('/')}/{name}" for name, space in node.get_node_names_and_namespaces()}
    return {
        "nodes": sorted(names - {f"/{node.get_name()}"}),
        "topics": dict(sorted(node.get_topic_names_and_types())),
        "services": dict(sorted(node.get_service_names_and_types())),
        "actions": dict(sorted(get_action_names_and_types(node))),
    }


def await_settled_graph(node: Node) -> dict[str, Any]:
    """List the graph once it is stable for one second, or after four seconds."""
    graph = list_graph(node)
    stable_since_s = time.monotonic()
    deadline_s = stable_since_s + MAX_SETTLE_S
    while time.monotonic() < min(deadline_s, stable_since_s + SETTLE_S):
        time.sleep(SPIN_S)
        latest = list_graph(node)
        if latest != graph:
            graph = latest
            stable_since_s = time.monotonic()
    return graph


def main() -> int:
    """Print {"topics": [...], "actions": {...}} once no topic was new for some seconds, or, for `graph`, the graph."""
    with open_observer("topic_survey") as node:
        if sys.argv[1:] == ["graph"]:
            print(json.dumps(await_settled_graph(node)))
            return 0
        survey = TopicSurvey(node)
        began_s = time.monotonic()
        until_s = began_s + DISCOVERY_S + COUNTED_S
        while (now_s := time.monotonic()) < until_s:
            if survey.subscribe_to_new():
                until_s = min(max(until_s, now_s + COUNTED_S), began_s + MAX_SURVEY_S)
            rclpy.spin_once(node, timeout_sec=SPIN_S)
        print(json.dumps({"topics": survey.describe_topics(), "actions": dict(get_action_names_and_types(node))}))
    return 0


def _compute_rate_hz(arrivals_s: list[float]) -> float:
    """Return the rate from the first to the last message; a single one counts for the whole time."""
    if len(arrivals_s) < 2:
        return len(arrivals_s) / COUNTED_S
    return (len(arrivals_s) - 1) / max(_compute_length_s(arrivals_s), SPIN_S)


def _compute_length_s(arrivals_s: list[float]) -> float:
    return arrivals_s[-1] - arrivals_s[0] if arrivals_s else 0.0


def _find_speech_content(types: list[str]) -> str | None:
    try:
        return detect_speech_content(message_class(types[0])())
    except (ImportError, ValueError, IndexError):
        return None


if __name__ == "__main__":
    sys.exit(main())
