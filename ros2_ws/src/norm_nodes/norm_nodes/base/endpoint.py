"""Qualities of service, and the topics, services and actions of a node as the API page lists them."""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rclpy.duration import Duration
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy

# For flags, decisions and other records that must not be lost.
EVENTS = QoSProfile(depth=50, reliability=ReliabilityPolicy.RELIABLE, history=HistoryPolicy.KEEP_LAST)
# Ears send ten marks of silence a second. In a short queue they would displace words before
# a busy reader.
SPEECH = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE, history=HistoryPolicy.KEEP_LAST)
# rclpy keeps ten requests of a service or an action; those of a burst beyond them would never be answered.
REQUESTS = SPEECH
# The depth spares a slow callback any loss. Best effort matches the publishers of cameras.
SENSOR = QoSProfile(depth=30, reliability=ReliabilityPolicy.BEST_EFFORT)
# A late subscriber gets the latest message.
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
# The period of heartbeats.
HEARTBEAT_S = 1.0
STATUS_QOS = QoSProfile(
    depth=10,
    reliability=ReliabilityPolicy.RELIABLE,
    deadline=Duration(seconds=2 * HEARTBEAT_S),
    liveliness=LivelinessPolicy.AUTOMATIC,
    liveliness_lease_duration=Duration(seconds=3 * HEARTBEAT_S),
)
DIAGNOSTICS_QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)


class Direction(StrEnum):
    """What a node is at an endpoint."""

    PUBLISHES = "publisher"
    SUBSCRIBES = "subscriber"
    SERVES = "service server"
    ACTS = "action server"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One topic, service or action of a node. `name` is fully resolved."""

    direction: Direction
    name: str
    type_name: str
    qos: str
    description: str


def describe_qos(profile: QoSProfile) -> str:
    """Describe the reliability, the durability and the depth of a quality of service."""
    reliability = "best effort" if profile.reliability is ReliabilityPolicy.BEST_EFFORT else "reliable"
    durability = "transient local" if profile.durability is DurabilityPolicy.TRANSIENT_LOCAL else "volatile"
    return f"{reliability}, {durability}, {profile.depth}"


class CountedPublisher(Publisher):
    """A publisher that counts its messages in a tally."""

    def set_tally(self, tally: Counter[str]) -> None:
        """Set the tally to count in from now on."""
        self._tally = tally
        self._name = self.topic_name
        tally[self._name] += 0

    def publish(self, msg: Any) -> None:
        """Count the message, then publish it, so that no subscriber sees it uncounted."""
        self._tally[self._name] += 1
        super().publish(msg)
