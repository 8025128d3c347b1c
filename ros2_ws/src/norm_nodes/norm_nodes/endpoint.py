"""What a node offers and listens to, kept beside the rclpy object so that the API page can be made of it."""

from dataclasses import dataclass
from enum import StrEnum

from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy

EVENTS = QoSProfile(depth=50, reliability=ReliabilityPolicy.RELIABLE, history=HistoryPolicy.KEEP_LAST)
# Deep, so that a slow callback loses nothing; best effort, as cameras publish.
SENSOR = QoSProfile(depth=30, reliability=ReliabilityPolicy.BEST_EFFORT)


class Direction(StrEnum):
    PUBLISHES = "publishes"
    SUBSCRIBES = "subscribes"
    SERVES = "serves"
    ACTS = "acts"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One topic, service or action of a node; name is fully resolved."""

    direction: Direction
    name: str
    type_name: str
    description: str
