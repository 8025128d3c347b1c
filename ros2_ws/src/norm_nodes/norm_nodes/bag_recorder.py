"""Record topics into a bag as they appear, without rosbag2."""

from pathlib import Path
from threading import Thread
from typing import Any

from pydantic import Field
from rclpy.clock import Clock, ClockType
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from norm_core.bags.types import typestore
from norm_core.bags.writer import BagWriteError, BagWriter
from norm_core.records.status import Health
from norm_core.runtime.bounded_queue import BoundedQueue
from norm_core.runtime.config import Config, ConfigError
from norm_nodes.convert import TypeMissingError, message_class
from norm_nodes.norm_node import NormNode

DISCOVERY_PERIOD_S = 0.2
QUEUE_LENGTH = 2000

# The nodes exchange these among themselves. They are no part of a session.
_NOT_RECORDED = ("/rosout", "/parameter_events", "/diagnostics", "/tactful/status")


class RecorderConfig(Config):
    """The recorder's parameters."""

    bag: str = Field("", description="folder to make; one that exists is refused")
    topics: tuple[str, ...] = Field(
        ("*",), min_length=1, description="topics to record, or * for all but the nodes' own bookkeeping"
    )


class BagRecorder(NormNode[RecorderConfig]):
    """Subscribe to matching topics as they appear, and write to disk from a separate thread."""

    config_model = RecorderConfig

    def __init__(self) -> None:
        super().__init__("bag_recorder")
        self._queue: BoundedQueue[tuple[str, str, bytes, int]] | None = None
        self._writer: BagWriter | None = None
        self._thread: Thread | None = None
        self._topics: dict[str, Any] = {}
        self._ignored: set[str] = set()
        self._active = False

    def open(self) -> None:
        """Make the bag and start the writing thread. Raises ConfigError if no bag is named."""
        if not self.config.bag:
            raise ConfigError("bag_recorder: bag: name the folder to record into")
        typestore()
        self._writer = BagWriter(Path(self.config.bag))
        self._queue = self.bounded_queue("to_disk", QUEUE_LENGTH)
        self._thread = Thread(target=self._write, args=(self._queue, self._writer), name="bag_recorder", daemon=True)
        self._thread.start()
        self._timer = self.create_timer(
            DISCOVERY_PERIOD_S, self._discover, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )

    def start(self) -> None:
        """Subscribe to the topics of this moment; later ones follow as they appear."""
        self._active = True
        self._discover()

    def stop(self) -> None:
        """Ignore further messages; the bag stays open."""
        self._active = False

    def close(self) -> None:
        """Write the rest of the queue and complete the bag."""
        self.destroy_timer(self._timer)
        for subscription in self._topics.values():
            self.destroy_subscription(subscription)
        self._topics.clear()
        self._ignored.clear()
        if self._queue and self._thread and self._writer:
            self._queue.close()
            self._thread.join()
            self._writer.close()

    def _discover(self) -> None:
        for topic, type_names in self.get_topic_names_and_types():
            if not self._wanted(topic) or not self.count_publishers(topic):
                continue
            try:
                type_ = message_class(type_names[0])
            except TypeMissingError as error:
                self._ignored.add(topic)
                self.raise_issue(f"type of {topic}", Health.DEGRADED, f"{topic}: not recorded, because {error}")
                continue
            self._topics[topic] = self.create_subscription(
                type_,
                topic,
                self._take(topic, type_names[0]),
                self._quality(topic),
                raw=True,
                event_callbacks=self.loss_events(topic),
            )

    def _wanted(self, topic: str) -> bool:
        if (
            topic in self._topics
            or topic in self._ignored
            or topic in _NOT_RECORDED
            or topic.endswith("/transition_event")
            or "/_" in topic
        ):
            return False
        return "*" in self.config.topics or topic in self.config.topics

    def _quality(self, topic: str) -> QoSProfile:
        offered = [info.qos_profile for info in self.get_publishers_info_by_topic(topic)]
        reliable = all(qos.reliability == ReliabilityPolicy.RELIABLE for qos in offered)
        latched = all(qos.durability == DurabilityPolicy.TRANSIENT_LOCAL for qos in offered)
        return QoSProfile(
            depth=100,
            history=HistoryPolicy.KEEP_ALL if reliable else HistoryPolicy.KEEP_LAST,
            reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        )

    def _take(self, topic: str, type_name: str) -> Any:
        def callback(data: bytes) -> None:
            if self._active and self._queue:
                self._queue.put((topic, type_name, bytes(data), self.clock.now_ns()))

        return callback

    def _write(self, queue: BoundedQueue[tuple[str, str, bytes, int]], writer: BagWriter) -> None:
        while not queue.is_drained():
            entry = queue.get(timeout_s=0.5)
            if entry is None:
                continue
            try:
                writer.write_serialized(*entry)
            except BagWriteError as error:
                self.count("messages_not_written")
                self.raise_issue("bag", Health.FAILED, str(error))
            else:
                self.count("messages_recorded")
