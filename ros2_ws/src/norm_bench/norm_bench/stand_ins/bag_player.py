"""Play a bag onto its topics at the recorded pace or at a multiple of it."""

import copy
import time
from collections.abc import Callable
from pathlib import Path

from norm_nodes.base.convert import TypeMissingError, message_class
from norm_nodes.base.endpoint import EVENTS
from pydantic import Field
from rclpy.duration import Duration
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock

from norm_bench.stand_ins.publisher_node import PublisherNode
from norm_core.bags.reader import BagError, BagReader
from norm_core.records.messages import message_type
from norm_core.records.stamps import split_stamp
from norm_core.records.status import Health, MonitorStatus
from norm_core.records.topics import DIAGNOSTICS_TOPIC
from norm_core.runtime.config import Config, ConfigError
from norm_core.runtime.time import NS_PER_S

# The publisher keeps every message until it is acknowledged: a slow subscriber slows the player and loses nothing.
PLAYED = QoSProfile(history=HistoryPolicy.KEEP_ALL, reliability=ReliabilityPolicy.RELIABLE)

# How long no further subscriber may have come before the first message.
SETTLED_S = 0.5
# How long the player waits at the end until all messages are acknowledged.
ACKNOWLEDGED_WITHIN_S = 10.0
ACKNOWLEDGED_POLL = Duration(seconds=0.05)
POLL_S = 0.02


class PlayerConfig(Config):
    """The player's parameters."""

    bag: str = Field("", description="folder of the rosbag2 bag to play")
    rate: float = Field(1.0, gt=0, le=1000, description="playback speed as a multiple of the recorded one")
    clock_hz: float = Field(0.0, ge=0, le=1000, description="messages a second on /clock; 0 for none")
    wait_for_subscribers_s: float = Field(
        5.0, ge=0, le=600, description="how long to wait for a subscriber to each topic before playing"
    )


class BagPlayer(PublisherNode[PlayerConfig]):
    """Publish every topic of a bag, with unchanged messages and stamps.

    The publishers are reliable and keep all messages. A topic that was transient local when recorded is so again.
    """

    config_model = PlayerConfig

    def __init__(self) -> None:
        super().__init__("bag_player")
        self._reader: BagReader | None = None
        self._publishers_by_topic: dict[str, Publisher] = {}
        self._has_finished = False

    def is_finished(self) -> bool:
        """Return whether the last message was published."""
        return self._has_finished

    def open(self) -> None:
        """Open the bag and advertise its topics. Raises ConfigError if it is not named or unreadable."""
        if not self.config.bag:
            raise ConfigError("bag_player: bag: name the folder of the bag to play")
        try:
            self._reader = BagReader(Path(self.config.bag))
        except BagError as error:
            raise ConfigError(str(error)) from error
        for summary in self._reader.topics:
            # The health of recorded nodes would be mistaken for that of running ones.
            if summary.type_name == message_type(MonitorStatus) or summary.topic == DIAGNOSTICS_TOPIC:
                self.get_logger().info(f"{summary.topic}: not played, because it is about the nodes of the recording")
                continue
            try:
                type_ = message_class(summary.type_name)
            except TypeMissingError as error:
                self.health_log.count("messages_of_missing_types", summary.message_count)
                why = f"{summary.topic}: not played, because {error}"
                self.health_log.state_issue(f"type of {summary.topic}", why)
                continue
            qos = copy.copy(PLAYED)
            if summary.latched_depth:
                qos.durability = DurabilityPolicy.TRANSIENT_LOCAL
            self._publishers_by_topic[summary.topic] = self.create_publisher(type_, summary.topic, qos)
        if self.config.clock_hz:
            self._clock_publisher = self.advertise(Clock, "/clock", EVENTS, "the time of the bag, if clock_hz is set")

    def start(self) -> None:
        """Start the thread that waits for subscribers and then plays from the first message."""
        self._has_finished = False
        super().start()

    def close(self) -> None:
        """Destroy the publishers and close the bag."""
        for publisher in self._publishers_by_topic.values():
            self.destroy_publisher(publisher)
        self._publishers_by_topic.clear()
        if self._reader:
            self._reader.close()

    def publish_until_halted(self) -> None:
        """Wait for subscribers, and play from the first message."""
        assert self._reader
        try:
            self._wait_until(self._make_settled_check(), self.config.wait_for_subscribers_s)
            self._publish_in_time(self._reader)
            self._wait_until(self._are_all_acknowledged, ACKNOWLEDGED_WITHIN_S)
        except BagError as error:
            self.health_log.raise_issue("bag", Health.FAILED, str(error))
        finally:
            self._has_finished = not self.halt.is_set()

    def _publish_in_time(self, reader: BagReader) -> None:
        bounds = reader.bounds_ns
        if bounds is None or not self._publishers_by_topic:
            return
        started_ns = next_tick_ns = time.monotonic_ns()
        for message in reader.messages(self._publishers_by_topic):
            due_ns = started_ns + (message.stamp_ns - bounds[0]) / self.config.rate
            while self.config.clock_hz and next_tick_ns <= due_ns:
                if self.halt.wait(max(0.0, (next_tick_ns - time.monotonic_ns()) / NS_PER_S)):
                    return
                now_ns = min(time.monotonic_ns(), due_ns)  # a late player keeps the time before the next message's
                bag_ns = bounds[0] + round((now_ns - started_ns) * self.config.rate)
                tick = Clock()
                tick.clock.sec, tick.clock.nanosec = split_stamp(bag_ns)
                self._clock_publisher.publish(tick)
                next_tick_ns = round(max(next_tick_ns, now_ns) + NS_PER_S / self.config.clock_hz)
            if self.halt.wait(max(0.0, (due_ns - time.monotonic_ns()) / NS_PER_S)):
                return
            self._publishers_by_topic[message.topic].publish(reader.encode_playable(message))
            self.health_log.count("messages_played")

    def _make_settled_check(self) -> Callable[[], bool]:
        """Return a check that each topic has a subscriber and that no new subscriber appeared recently.

        Discovery finds subscribers one after another, so one subscriber alone proves nothing.
        """
        counts: list[int] = []
        changed_s = time.monotonic()

        def have_settled() -> bool:
            nonlocal counts, changed_s
            now_s = time.monotonic()
            earlier_counts = counts
            counts = [publisher.get_subscription_count() for publisher in self._publishers_by_topic.values()]
            if counts != earlier_counts:
                changed_s = now_s
            return all(counts) and now_s - changed_s >= SETTLED_S

        return have_settled

    def _are_all_acknowledged(self) -> bool:
        return all(publisher.wait_for_all_acked(ACKNOWLEDGED_POLL) for publisher in self._publishers_by_topic.values())

    def _wait_until(self, condition: Callable[[], bool], timeout_s: float) -> None:
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s and not self.halt.wait(POLL_S):
            if condition():
                return
