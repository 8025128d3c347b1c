"""Subscriptions to the topics and actions that state what or when the robot speaks."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rclpy.qos import QoSProfile, ReliabilityPolicy

from norm_monitor.senses.robot_voice.robot_messages import expand_topics
from norm_nodes.base.endpoint import EVENTS, SENSOR
from norm_nodes.base.endpoint_node import EndpointNode

OnMessage = Callable[[str, Any], None]  # gets a topic and a message
OnLoss = Callable[[str], None]  # gets a topic that lost its last publisher

# The effect of a missing topic, by the parameter that names it.
_EFFECTS = {
    "robot_speech_topic": "nothing is heard of the robot; start the robot's speech",
    "robot_speaking_topic": "the times of the robot's words are estimated; start the node that states when it speaks",
}
# How long DDS takes to discover a publisher.
DISCOVERY_S = 3.0
_DESCRIPTION = "when the robot speaks, and what it says"


class RobotTopics:
    """The subscriptions to a robot's topics and actions, of any type. Call `find` until all are there."""

    def __init__(
        self, node: EndpointNode, names: Mapping[str, str], stated_type: str, on_message: OnMessage, on_loss: OnLoss
    ) -> None:
        """Follow the names, given by parameter. `stated_type` is that of the first; publishers announce all others."""
        self._node = node
        self._on_message = on_message
        self._on_loss = on_loss
        self._published: set[str] = set()
        self._names = {parameter: node.resolve_topic_name(name) for parameter, name in names.items() if name}
        self._stated = {self._names["robot_speech_topic"]: stated_type} if stated_type else {}
        self._subscribed_types: dict[str, str] = {}  # by topic
        self._since_s = time.monotonic()
        for topic, type_name in self._stated.items():
            self._subscribe(topic, type_name, SENSOR)

    def find(self) -> None:
        """Subscribe to topics that appeared, and state what is missing. Call it regularly."""
        present = dict(self._node.get_topic_names_and_types())
        for parameter, name in self._names.items():
            problems = [self._try_topic(topic, parameter) for topic in expand_topics([name], present)]
            self._node.health_log.state_issue(f"robot topic {name}", " ".join(filter(None, problems)))

    def _try_topic(self, topic: str, parameter: str) -> str:
        """Subscribe to a topic if possible; otherwise return the problem and the remedy."""
        publishers = self._node.get_publishers_info_by_topic(topic)
        if not publishers:
            if topic in self._published:
                self._published.discard(topic)
                self._on_loss(topic)
            if time.monotonic() - self._since_s < DISCOVERY_S:
                return ""
            return f"{topic}: nobody publishes it, so {_EFFECTS[parameter]}, or correct {parameter} of ears"
        self._published.add(topic)
        announced = self._node.find_published_types(topic)
        if topic not in self._subscribed_types:
            is_reliable = all(
                publisher.qos_profile.reliability == ReliabilityPolicy.RELIABLE for publisher in publishers
            )
            self._subscribe(topic, announced[0], EVENTS if is_reliable else SENSOR)
        used = self._subscribed_types[topic]
        if used in announced and len(announced) == 1:
            return ""
        remedy = "correct robot_speech_type" if topic in self._stated else "let one type be published"
        others = " and ".join(type_name for type_name in announced if type_name != used)
        return f"{topic}: is published as {others} and read as {used}; {remedy}, or name another {parameter}"

    def _subscribe(self, topic: str, type_name: str, qos: QoSProfile) -> None:
        self._subscribed_types[topic] = type_name
        parameter = "robot_speech_type" if topic in self._stated else ""
        if type_ := self._node.find_class(type_name, topic, parameter):
            self._node.subscribe(type_, topic, partial(self._on_message, topic), qos, _DESCRIPTION)
