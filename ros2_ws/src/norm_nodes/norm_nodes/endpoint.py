"""The topics, services and actions of a node, recorded so that the API page can list them."""

from dataclasses import dataclass
from enum import StrEnum

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

EVENTS = QoSProfile(depth=50, reliability=ReliabilityPolicy.RELIABLE, history=HistoryPolicy.KEEP_LAST)
# The depth lets a slow callback lose nothing. Best effort matches what cameras publish.
SENSOR = QoSProfile(depth=30, reliability=ReliabilityPolicy.BEST_EFFORT)
# A late subscriber gets the latest message.
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Direction(StrEnum):
    """Whether a node publishes, subscribes, serves a service or serves an action."""

    PUBLISHES = "publishes"
    SUBSCRIBES = "subscribes"
    SERVES = "serves"
    ACTS = "acts"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One topic, service or action of a node. `name` is fully resolved."""

    direction: Direction
    name: str
    type_name: str
    description: str
