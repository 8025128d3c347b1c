"""Record topics into a bag as they appear, without rosbag2."""

import time
from collections.abc import Iterator
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

from norm_nodes.base.convert import message_class
from norm_nodes.base.norm_node import NormNode
from pydantic import Field, field_validator
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from norm_bench.stand_ins.declared_topic import NotRecordableError, describe_published_topic
from norm_core.bags.topic import BagTopic
from norm_core.bags.writer import BagWriteError, BagWriter
from norm_core.records.status import Health
from norm_core.runtime.config import Config, ConfigError
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from norm_core.streams.bounded_queue import BoundedQueue

# How often new topics are looked for.
DISCOVERY_PERIOD_S = 0.2
# How many messages wait to be written.
QUEUE_LENGTH = 2000
# How often the configuration looks for the named topics.
POLL_S = 0.05
# How long the thread waits for a message before it flushes the bag.
WAIT_S = 0.5
_NOT_RECORDED = ("/rosout", "/parameter_events")

_Entry = tuple[BagTopic, bytes, int]  # with the stamp of its arrival


class RecorderConfig(Config):
    """The recorder's parameters."""

    bag: str = Field("", description="folder to create; it must not exist")
    topics: tuple[str, ...] = Field(
        ("*",),
        min_length=1,
        description="topics to record; * for all except hidden topics, logs and parameter events",
    )
    wait_for_topics_s: float = Field(
        0.0, ge=0, le=600, description="how long to wait for publishers of the named topics"
    )

    @field_validator("topics")
    @classmethod
    def _make_absolute(cls, topics: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name if name == "*" else f"/{name.lstrip('/')}" for name in topics)


class BagRecorder(NormNode[RecorderConfig]):
    """Subscribe to matching topics as they appear, with the QoS of their publishers, and write them to a bag."""

    config_model = RecorderConfig

    def __init__(self) -> None:
        super().__init__("bag_recorder")
        self._queue: BoundedQueue[_Entry] | None = None
        self._writer: BagWriter | None = None
        self._thread: Thread | None = None
        self._topics: dict[str, Any] = {}
        self._refused: dict[str, str] = {}

    def open(self) -> None:
        """Make the bag and start the writing thread.

        Raises ConfigError if no bag is named, or if a named topic is published and cannot be recorded.
        """
        if not self.config.bag:
            raise ConfigError("bag_recorder: bag: name the folder to record into")
        self._check_named_topics()
        bag = avoid_unfinished(Path(self.config.bag))
        self._writer = BagWriter(bag)
        unfinished = f"records to {bag}, as {self.config.bag} was left unfinished; complete that by mcap recover"
        self.notes = (f"bag_recorder: {unfinished}",) if bag != Path(self.config.bag) else ()
        self._queue = self.health_log.queue("to_disk", QUEUE_LENGTH)
        self._thread = Thread(target=self._write, args=(self._queue, self._writer), name="bag_recorder", daemon=True)
        self._thread.start()
        self.repeat(DISCOVERY_PERIOD_S, self._discover)

    def start(self) -> None:
        """Subscribe to the topics of this moment; later ones follow as they appear."""
        self._discover()
        published = [name for name, _ in self.get_topic_names_and_types() if self.count_publishers(name)]
        for topic in sorted(self._named - self._topics.keys() - self._refused.keys()):
            similar = get_close_matches(topic, published, 1)
            remedy = f"did you mean {similar[0]}?" if similar else f"check the name with {PROGRAM} doctor"
            why = f"{topic}: nobody publishes it yet, so the recorder waits for it; {remedy}"
            self.health_log.state_issue(f"publisher of {topic}", why)

    def close(self) -> None:
        """Write the rest of the queue and complete the bag."""
        for subscription in self._topics.values():
            self.destroy_subscription(subscription)
        self._topics.clear()
        self._refused.clear()
        if self._queue and self._thread and self._writer:
            self._queue.close()
            self._thread.join()
            self._writer.close()
            self.get_logger().info(f"{self.config.bag}: {count_of(self._writer.message_count, 'message')}")

    @property
    def _named(self) -> set[str]:
        return set(self.config.topics) - {"*"}

    def _check_named_topics(self) -> None:
        deadline_s = time.monotonic() + self.config.wait_for_topics_s
        while True:
            present = {name: types for name, types in self._find_published() if name in self._named}
            if len(present) == len(self._named) or time.monotonic() >= deadline_s:
                break
            time.sleep(POLL_S)
        faults = []
        for topic, type_names in present.items():
            try:
                describe_published_topic(self, topic, type_names)
            except NotRecordableError as error:
                faults.append(f"{topic} cannot be recorded, because {error}")
        if faults:
            raise ConfigError("; ".join(faults))

    def _find_published(self) -> Iterator[tuple[str, list[str]]]:
        for topic, type_names in self.get_topic_names_and_types():
            if self.count_publishers(topic):
                yield topic, type_names

    def _discover(self) -> None:
        for topic, type_names in self._find_published():
            if topic in self._topics or topic in self._refused or not self._is_chosen(topic):
                continue
            try:
                declared = describe_published_topic(self, topic, type_names)
            except NotRecordableError as error:
                self._refused[topic] = str(error)
                self.health_log.state_issue(f"type of {topic}", f"{topic}: not recorded, because {error}")
                continue
            self.health_log.clear_issue(f"publisher of {topic}")
            self._topics[topic] = self.create_subscription(
                message_class(declared.type_name),
                topic,
                partial(self._queue_bytes, declared),
                self._choose_qos(topic),
                raw=True,
                event_callbacks=self.make_loss_events(topic),
            )
            self.get_logger().info(f"recording {topic} ({declared.type_name})")

    def _is_chosen(self, topic: str) -> bool:
        is_hidden = topic in _NOT_RECORDED or topic.endswith("/transition_event") or "/_" in topic
        return topic in self._named or ("*" in self.config.topics and not is_hidden)

    def _choose_qos(self, topic: str) -> QoSProfile:
        offered = [info.qos_profile for info in self.get_publishers_info_by_topic(topic)]
        is_reliable = all(qos.reliability == ReliabilityPolicy.RELIABLE for qos in offered)
        is_latched = all(qos.durability == DurabilityPolicy.TRANSIENT_LOCAL for qos in offered)
        return QoSProfile(
            depth=100,
            history=HistoryPolicy.KEEP_ALL if is_reliable else HistoryPolicy.KEEP_LAST,
            reliability=ReliabilityPolicy.RELIABLE if is_reliable else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if is_latched else DurabilityPolicy.VOLATILE,
        )

    def _queue_bytes(self, topic: BagTopic, data: bytes) -> None:
        if self.is_active and self._queue:
            self._queue.put((topic, bytes(data), self.clock.now_ns()))

    def _write(self, queue: BoundedQueue[_Entry], writer: BagWriter) -> None:
        while not queue.is_drained():
            entry = queue.get(timeout_s=WAIT_S)
            try:
                if entry:
                    writer.write_copied(*entry)
                    self.health_log.count("messages_recorded")
                writer.flush_if_due(time.monotonic_ns())
            except BagWriteError as error:
                self.health_log.count("messages_not_written")
                self.health_log.raise_issue("bag", Health.FAILED, str(error))


def avoid_unfinished(bag: Path) -> Path:
    """Return a path for the bag, with a number if a killed recorder left a bag without metadata there."""
    path = bag
    number = 1
    while path.is_dir() and all(file.suffix == ".mcap" for file in path.iterdir()):  # it may hold nothing yet
        number += 1
        path = bag.with_name(f"{bag.name}_{number}")
    return path
