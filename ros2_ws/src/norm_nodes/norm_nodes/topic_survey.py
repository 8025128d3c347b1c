"""Print the topics of the ROS domain as JSON: types, publishers, reliability, and messages a second."""

import argparse
import json
import os
import sys
import time
from collections import Counter
from functools import partial
from typing import Any

import rclpy
from rclpy.action import get_action_names_and_types
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions

from norm_nodes.convert import message_class

# Best effort and volatile matches every publisher.
_ANY = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT, durability=DurabilityPolicy.VOLATILE)
_NOT_A_TOPIC_OF_THE_ROBOT = ("/rosout", "/parameter_events")
SETTLE_S, MOST_SETTLE_S, SPIN_S = 1.0, 4.0, 0.05


class TopicSurvey:
    """Subscribe to every published topic and count what arrives."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._counts: Counter[str] = Counter()
        self._seen: set[str] = set()

    def subscribe_to_new(self) -> bool:
        """Subscribe to topics that appeared; return whether there were any."""
        new = set(self._published()) - self._seen
        for topic in new:
            self._seen.add(topic)
            try:
                type_ = message_class(self._types(topic)[0])
            except (ImportError, ValueError):
                continue  # counted as unknown
            self._counts[topic] = 0
            self._node.create_subscription(type_, topic, partial(self._count, topic), _ANY, raw=True)
        return bool(new)

    def topics(self, counted_s: float) -> list[dict[str, Any]]:
        """Describe every published topic; a rate of None means that its type is not installed here."""
        return [
            {
                "topic": topic,
                "types": self._types(topic),
                "publishers": sorted({_name(end) for end in self._node.get_publishers_info_by_topic(topic)}),
                "reliable": all(
                    end.qos_profile.reliability == ReliabilityPolicy.RELIABLE
                    for end in self._node.get_publishers_info_by_topic(topic)
                ),
                "rate_hz": self._counts[topic] / counted_s if topic in self._counts else None,
            }
            for topic in sorted(self._published())
        ]

    def restart_counting(self) -> None:
        """Forget what was counted so far."""
        for topic in self._counts:
            self._counts[topic] = 0

    def _published(self) -> list[str]:
        names = (topic for topic, _ in self._node.get_topic_names_and_types())
        return [
            topic for topic in names if topic not in _NOT_A_TOPIC_OF_THE_ROBOT and self._node.count_publishers(topic)
        ]

    def _types(self, topic: str) -> list[str]:
        return sorted({end.topic_type for end in self._node.get_publishers_info_by_topic(topic)})

    def _count(self, topic: str, _: bytes) -> None:
        self._counts[topic] += 1


def main() -> int:
    """Print {"topics": [...], "actions": {...}} after counting for some seconds."""
    parser = argparse.ArgumentParser(prog="topic_survey", description=__doc__)
    parser.add_argument("--count-s", type=float, default=3.0, help="how long messages are counted")
    count_s = parser.parse_args().count_s
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = Node(f"topic_survey_{os.getpid()}", enable_rosout=False, start_parameter_services=False)
        survey = TopicSurvey(node)
        began_s = changed_s = time.monotonic()
        while (now_s := time.monotonic()) < min(began_s + MOST_SETTLE_S, changed_s + SETTLE_S):
            if survey.subscribe_to_new():
                changed_s = now_s
            rclpy.spin_once(node, timeout_sec=SPIN_S)
        survey.restart_counting()
        counted_from_s = time.monotonic()
        while time.monotonic() < counted_from_s + count_s:
            rclpy.spin_once(node, timeout_sec=SPIN_S)
        topics = survey.topics(time.monotonic() - counted_from_s)
        print(json.dumps({"topics": topics, "actions": dict(get_action_names_and_types(node))}))
    finally:
        rclpy.try_shutdown()
    return 0


def _name(endpoint: Any) -> str:
    return f"{endpoint.node_namespace.rstrip('/')}/{endpoint.node_name}"


if __name__ == "__main__":
    sys.exit(main())
