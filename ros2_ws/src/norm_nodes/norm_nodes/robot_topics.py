"""Subscriptions that come and go: to what tells of the robot's speech, and of the persons or voices of REP-155."""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription

from norm_monitor.senses.robot_voice.robot_messages import expand_topics
from norm_nodes.endpoint import EVENTS, LATCHED, SENSOR
from norm_nodes.endpoint_node import EndpointNode

TakeMessage = Callable[[str, Any], None]  # takes a topic and a message
LoseTopic = Callable[[str], None]  # takes a topic that lost its last publisher

_LACKING = {
    "robot_speech_topic": "nothing is heard of the robot; start the robot's speech",
    "robot_speaking_topic": "the times of the robot's words are estimated; start what tells whether it speaks",
}
DISCOVERY_S = 3.0  # until a publisher that is there is known
_DESCRIPTION = "when the robot speaks, and what it says"


class RobotTopics:
    """The subscriptions to a robot's topics and actions, of any type. Call `find` until all are there."""

    def __init__(
        self, node: EndpointNode, names: Mapping[str, str], stated_type: str, take: TakeMessage, lose: LoseTopic
    ) -> None:
        """Take names by their parameter. The type of the first may be stated; publishers announce all others."""
        self._node, self._take, self._lose = node, take, lose
        self._published: set[str] = set()
        self._names = {parameter: node.resolve_topic_name(name) for parameter, name in names.items() if name}
        self._stated = {self._names["robot_speech_topic"]: stated_type} if stated_type else {}
        self._types: dict[str, str] = {}  # of subscriptions
        self._since_s = time.monotonic()
        for topic, type_name in self._stated.items():
            self._subscribe(topic, type_name, SENSOR)

    def find(self) -> None:
        """Subscribe to topics that appeared, and state what is missing. Call it now and then."""
        present = dict(self._node.get_topic_names_and_types())
        for parameter, name in self._names.items():
            problems = [self._problem_of(topic, parameter) for topic in expand_topics([name], present)]
            self._node.health_log.state_issue(f"robot topic {name}", " ".join(filter(None, problems)))

    def _problem_of(self, topic: str, parameter: str) -> str:
        """Subscribe to a topic if possible; return what prevents it and what to do."""
        publishers = self._node.get_publishers_info_by_topic(topic)
        if not publishers:
            if topic in self._published:
                self._published.discard(topic)
                self._lose(topic)
            if time.monotonic() - self._since_s < DISCOVERY_S:
                return ""
            return f"{topic}: nobody publishes it, so {_LACKING[parameter]}, or correct {parameter} of ears"
        self._published.add(topic)
        announced = self._node.published_types(topic)
        if topic not in self._types:
            reliable = all(publisher.qos_profile.reliability == ReliabilityPolicy.RELIABLE for publisher in publishers)
            self._subscribe(topic, announced[0], EVENTS if reliable else SENSOR)
        used = self._types[topic]
        if used in announced and len(announced) == 1:
            return ""
        remedy = "correct robot_speech_type" if topic in self._stated else "let one type be published"
        others = " and ".join(type_name for type_name in announced if type_name != used)
        return f"{topic}: is published as {others} and read as {used}; {remedy}, or name another {parameter}"

    def _subscribe(self, topic: str, type_name: str, qos: QoSProfile) -> None:
        self._types[topic] = type_name
        parameter = "robot_speech_type" if topic in self._stated else ""
        if type_ := self._node.find_class(type_name, topic, parameter):
            self._node.subscribe(type_, topic, partial(self._take, topic), qos, _DESCRIPTION)


HUMANS_PATTERN = r"^(/[A-Za-z_]\w*)+$"
IDS_TYPE, STRING_TYPE, BOOL_TYPE = "hri_msgs/msg/IdsList", "std_msgs/msg/String", "std_msgs/msg/Bool"
# Publishers often send what holds for long once, before any subscriber exists. A subscription of one durability alone
# misses half of them; two take the messages of some publishers twice.
EITHER_DURABILITY = (SENSOR, LATCHED)
_TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class TrackedIds:
    """The subscriptions to `NAMESPACE/ID/NAME` of each id that a list names or that somebody publishes."""

    def __init__(
        self,
        node: EndpointNode,
        namespace: str,
        names: tuple[str, ...],
        subscribe: Callable[[str, str], list[Subscription]],
        limit: int,
    ) -> None:
        """`subscribe` takes an id and the prefix of its topics; at most `limit` ids are followed."""
        self._node, self._namespace, self._names = node, namespace, names
        self._subscribe, self._limit = subscribe, limit
        self._by_id: dict[str, list[Subscription]] = {}
        self._published: list[str] = []
        self._pattern = re.compile(rf"{re.escape(namespace)}/(\w+)/(?:{'|'.join(names)})")

    def look(self) -> None:
        """Find the ids with a publisher, even if no list names them: some topics are published once."""
        matches = (self._pattern.fullmatch(name) for name, _ in self._node.get_topic_names_and_types())
        ids = sorted({match[1] for match in matches if match})
        self._published = [tracked_id for tracked_id in ids if self._is_published(tracked_id)]

    def follow(self, listed: Iterable[str]) -> None:
        """Unsubscribe from ids that are neither listed nor published, and subscribe to new ones, the listed first."""
        wanted = list(dict.fromkeys((*listed, *self._published)))[: self._limit]
        for gone in [tracked_id for tracked_id in self._by_id if tracked_id not in wanted]:
            self._part_from(gone)
        for tracked_id in wanted:
            if tracked_id in self._by_id:
                continue
            is_token = bool(_TOKEN.fullmatch(tracked_id))
            if not is_token:
                self._node.health_log.count("ids_invalid")  # no topic can have this name, so none is published
            prefix = f"{self._namespace}/{tracked_id}"
            self._by_id[tracked_id] = self._subscribe(tracked_id, prefix) if is_token else []

    def close(self) -> None:
        """End every subscription."""
        for tracked_id in list(self._by_id):
            self._part_from(tracked_id)

    def _part_from(self, tracked_id: str) -> None:
        for subscription in self._by_id.pop(tracked_id):
            self._node.destroy_subscription(subscription)

    def _is_published(self, tracked_id: str) -> bool:
        # The node's own subscriptions also count as topics in the graph.
        prefix = f"{self._namespace}/{tracked_id}"
        return any(self._node.count_publishers(f"{prefix}/{name}") for name in self._names)
