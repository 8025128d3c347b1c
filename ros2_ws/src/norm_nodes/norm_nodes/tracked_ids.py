"""Subscriptions to the topics of each person, face or voice of REP-155, which come and go."""

import re
from collections.abc import Callable, Iterable

from rclpy.subscription import Subscription

from norm_nodes.base.endpoint import LATCHED, SENSOR
from norm_nodes.base.endpoint_node import EndpointNode

HUMANS_PATTERN = r"^(/[A-Za-z_]\w*)+$"
IDS_TYPE = "hri_msgs/msg/IdsList"
ROI_TYPE = "hri_msgs/msg/NormalizedRegionOfInterest2D"
SPEECH_TYPE = "hri_msgs/msg/LiveSpeech"
STRING_TYPE = "std_msgs/msg/String"
BOOL_TYPE = "std_msgs/msg/Bool"
# Below the namespace of humans.
FACES_TRACKED = "faces/tracked"
VOICES_TRACKED = "voices/tracked"
# Publishers often send a lasting value only once, before any subscriber exists. A subscription of one durability alone
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
        self._node = node
        self._namespace = namespace
        self._names = names
        self._subscribe = subscribe
        self._limit = limit
        self._by_id: dict[str, list[Subscription]] = {}
        self._published: list[str] = []
        self._pattern = re.compile(rf"{re.escape(namespace)}/(\w+)/(?:{'|'.join(names)})")

    def find_published(self) -> None:
        """Find the ids that have a publisher, even if no list names them, as some topics are published only once."""
        matches = (self._pattern.fullmatch(name) for name, _ in self._node.get_topic_names_and_types())
        ids = sorted({match[1] for match in matches if match})
        self._published = [tracked_id for tracked_id in ids if self._is_published(tracked_id)]

    def follow(self, listed_ids: Iterable[str]) -> None:
        """Unsubscribe from ids that are neither listed nor published, and subscribe to new ones, the listed first."""
        wanted = list(dict.fromkeys((*listed_ids, *self._published)))[: self._limit]
        for tracked_id in self._by_id.keys() - set(wanted):
            self._unsubscribe(tracked_id)
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
            self._unsubscribe(tracked_id)

    def _unsubscribe(self, tracked_id: str) -> None:
        for subscription in self._by_id.pop(tracked_id):
            self._node.destroy_subscription(subscription)

    def _is_published(self, tracked_id: str) -> bool:
        # The node's own subscriptions also count as topics in the graph.
        prefix = f"{self._namespace}/{tracked_id}"
        return any(self._node.count_publishers(f"{prefix}/{name}") for name in self._names)
