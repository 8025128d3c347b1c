"""Play a bag to nodes over DDS, in lockstep, paced or both, and print their output as lines of JSON.

In lockstep each batch is sent after the nodes have processed the one before, so the load of the machine changes
nothing.
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import rclpy
from norm_nodes.base.convert import TypeMissingError, from_ros, message_class, record_class
from norm_nodes.base.endpoint import EVENTS, STATUS_QOS
from norm_nodes.base.executors import fastest_executor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import Empty

from norm_bench.batch import Batch
from norm_bench.drain import DrainClient, DrainReport
from norm_bench.stand_ins.bag_player import PLAYED
from norm_core.bags.reader import BagMessage, BagReader
from norm_core.records.decision import Decision
from norm_core.records.episode import Answer, Episode, Query
from norm_core.records.flag import SocialFlag
from norm_core.records.json_codec import to_plain
from norm_core.records.messages import message_type
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.status import MonitorStatus
from norm_core.records.topics import (
    ANSWERS_TOPIC,
    DECISIONS_TOPIC,
    FLAGS_TOPIC,
    NAMESPACE,
    RECORDING_ENDED_TOPIC,
    SENSES_ENDED_TOPIC,
    STATUS_TOPIC,
    UTTERANCES_TOPIC,
    WINDOWS_TOPIC,
    full_topic,
)
from norm_core.records.window import ClosedWindow
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S

OUTPUT_TOPICS = {
    full_topic(UTTERANCES_TOPIC): Utterance,
    full_topic(WINDOWS_TOPIC): ClosedWindow,
    full_topic(FLAGS_TOPIC): SocialFlag,
    full_topic(ANSWERS_TOPIC): Answer,
    full_topic(DECISIONS_TOPIC): Decision,
}
# The player waits until the nodes have processed all messages before each of these, and the message itself, because
# their order among other topics matters.
BARRIER_TYPES = tuple(map(message_type, (RobotSpeech, Query, Episode)))
# In this order: the senses end first, then the nodes that consume their output.
END_TOPICS = (full_topic(RECORDING_ENDED_TOPIC), full_topic(SENSES_ENDED_TOPIC))
# How long the player waits until it and the nodes have discovered each other.
MATCH_TIMEOUT_S = 30.0
# How long nodes may take to reply to a request, on a machine with many other programs.
REPLY_TIMEOUT_S = 120.0
# How long nodes may be busy with a batch.
BUSY_TIMEOUT_S = 600.0
# After this long a missing message is lost. The middleware sends again only with its heartbeat, every three seconds.
LOST_AFTER_S = 10.0
# How long the node spins before a condition is checked again.
SPIN_S = 0.2
# The pauses between two requests for reports, which grow from the first to the longest.
FIRST_PAUSE_S = 0.0005
LONGEST_PAUSE_S = 0.02


class PlayerError(TactfulError, RuntimeError):
    """Nodes were not found, stopped replying or lost messages."""

    exit_code = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the arguments and play the bag; print an error of ours. The process ends with its parent."""
    parser = argparse.ArgumentParser(prog="play", description=__doc__)
    parser.add_argument("bag", type=Path)
    parser.add_argument("nodes", nargs="+", help="names of the nodes it is played to")
    parser.add_argument(
        "--rate", type=float, default=0.0, help="0: in lockstep; otherwise at this multiple of the recorded pace"
    )
    parser.add_argument("--lockstep", action="store_true", help="with a rate, wait for the nodes too")
    parser.add_argument("--lossless", nargs="*", default=[], help="topics of which the nodes keep every message")
    parser.add_argument("--goes-on", action="store_true", help="let the nodes run on, as another bag follows")
    parser.add_argument("--roomy", action="store_true", help="the middleware's shared memory holds 16 MB")
    options = parser.parse_args(arguments)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        with BagReader(options.bag) as bag:
            LockstepPlayer(bag, options).run()
    except TactfulError as error:
        print(f"tactful: {error}", file=sys.stderr)
        return error.exit_code
    finally:
        rclpy.try_shutdown()
    return 0


class LockstepPlayer:
    """Publish the topics of a bag that have subscribers, and count messages sent and processed.

    Each wait has a deadline.
    """

    def __init__(self, bag: BagReader, options: argparse.Namespace) -> None:
        self._parent = os.getppid()
        self._node = Node("play", namespace="tactful", enable_rosout=False, start_parameter_services=False)
        self._executor = fastest_executor()
        self._executor.add_node(self._node)
        self._drain_client = DrainClient(self._node)
        self._bag, self._rate = bag, options.rate
        self._in_lockstep = options.lockstep or not options.rate
        self._lossless, self._is_roomy, self._goes_on = options.lossless, options.roomy, options.goes_on
        self._expected = {f"{NAMESPACE}/{name}" for name in options.nodes}
        self._publishers: dict[str, Publisher] = {}
        self._skipped_topics: dict[str, str] = {}
        for summary in bag.topics:
            try:
                type_ = message_class(summary.type_name)
            except TypeMissingError as error:
                self._skipped_topics[summary.topic] = str(error)
            else:
                self._publishers[summary.topic] = self._node.create_publisher(type_, summary.topic, PLAYED)
        for topic in END_TOPICS:
            self._publishers[topic] = self._node.create_publisher(Empty, topic, EVENTS)
        self._node.create_subscription(
            record_class(MonitorStatus), full_topic(STATUS_TOPIC), self._on_status, STATUS_QOS
        )
        self._received: Counter[str] = Counter()
        for topic, record_type in OUTPUT_TOPICS.items():
            self._node.create_subscription(
                record_class(record_type), topic, partial(self._on_output, topic, record_type), EVENTS
            )
        self._replies_at_start: dict[str, DrainReport] = {}
        self._statuses: dict[str, MonitorStatus] = {}
        self._sent: Counter[str] = Counter()
        self._began_s = self._at_ns = self._first_ns = 0.0

    def run(self) -> None:
        """Play the whole bag, then end the input of the nodes and print a summary, unless another bag follows."""
        names = ", ".join(sorted(self._expected))
        has_nodes = partial(self._drain_client.has_nodes, len(self._expected))
        self._wait_until(has_nodes, MATCH_TIMEOUT_S, f"the nodes {names}")
        self._request_reports()
        wanted = Counter(topic for reply in self._replies.values() for topic in reply.processed)
        played = set(self._publishers) & set(wanted)
        deadline_s = time.monotonic() + MATCH_TIMEOUT_S
        while unmatched := self._find_unmatched_topics(played, wanted):
            if time.monotonic() > deadline_s:
                raise PlayerError(
                    f"{', '.join(unmatched)}: no connection after {MATCH_TIMEOUT_S:.0f} s; check that the nodes run"
                )
            self._spin_until(time.monotonic() + LONGEST_PAUSE_S)
            self._request_reports()
        self._drain(lossless=False)
        self._replies_at_start = self._replies
        first_ns, _ = self._bag.bounds_ns or (0, 0)
        self._first_ns, self._at_ns, self._began_s = first_ns, first_ns, time.monotonic()
        topics = played - {*END_TOPICS}
        self._print_line(
            "begin",
            {
                "topics_without_subscriber": sorted({*self._publishers} - played - {*END_TOPICS}),
                "skipped_topics": self._skipped_topics,
            },
        )
        if self._in_lockstep:
            self._play_in_lockstep(topics)
        else:
            for message in self._bag.messages(topics):
                self._send(message)
        if self._goes_on:
            self._drain()
            return
        sent = dict(self._sent)
        for topic in END_TOPICS:
            if topic in played:
                self._drain(lossless=self._in_lockstep)
                self._publishers[topic].publish(Empty())
                self._sent[topic] += 1
        lost = self._drain(lossless=self._in_lockstep)
        took_s = time.monotonic() - self._began_s
        self._statuses.clear()  # drop statuses older than the last processed message
        self._wait_until(lambda: len(self._statuses) == len(self._expected), REPLY_TIMEOUT_S, "the last heartbeats")
        self._print_line(
            "end",
            {
                "took_s": took_s,
                "sent": sent,
                "lost": lost,
                "dropped": {reply.node: reply.dropped for reply in self._replies.values()},
                "status": [to_plain(status) for status in self._statuses.values()],
            },
        )

    def _wait_until(self, condition: Callable[[], bool], within_s: float, event: str) -> None:
        deadline_s = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > deadline_s:
                raise PlayerError(f"waited {within_s:.0f} s in vain for {event}")
            self._check_parent()
            self._executor.spin_once(timeout_sec=SPIN_S)

    def _spin_until(self, due_s: float) -> None:
        while (remaining_s := due_s - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=remaining_s)
        self._check_parent()

    def _check_parent(self) -> None:
        if os.getppid() != self._parent:
            raise PlayerError("the process that started this has ended")

    def _find_unmatched_topics(self, played: set[str], wanted: Counter[str]) -> list[str]:
        """List the topics on which some publisher and subscriber have not discovered each other."""
        publisher_counts = Counter([*played, *(topic for reply in self._replies.values() for topic in reply.published)])
        unmatched = {topic for topic in played if self._publishers[topic].get_subscription_count() < wanted[topic]}
        for reply in self._replies.values():
            unmatched |= {
                topic for topic in reply.processed if reply.publisher_counts.get(topic, 0) < publisher_counts[topic]
            }
        return sorted(unmatched)

    def _play_in_lockstep(self, topics: set[str]) -> None:
        batch = Batch(int(self._first_ns), self._lossless, is_roomy=self._is_roomy)
        for message in self._bag.messages(topics):
            is_barrier = message.type_name in BARRIER_TYPES
            if batch and (is_barrier or not batch.has_room_for(message)):
                self._drain()
                batch.begin(message.stamp_ns)
            self._send(message)
            batch.add(message)
            if is_barrier:
                self._drain()
                batch.begin(message.stamp_ns)

    def _send(self, message: BagMessage) -> None:
        if self._rate:
            self._executor.spin_once(timeout_sec=0)
            self._spin_until(self._began_s + (message.stamp_ns - self._first_ns) / NS_PER_S / self._rate)
        self._at_ns = message.stamp_ns
        self._publishers[message.topic].publish(self._bag.encode_playable(message))
        self._sent[message.topic] += 1
        if message.type_name in BARRIER_TYPES:
            self._print_line(message.topic, to_plain(self._bag.decode(message)))

    def _drain(self, lossless: bool = True) -> dict[str, int]:
        """Wait until every node has processed every message sent.

        Returns the lost messages by subscriber and topic. Raises PlayerError for a loss where `lossless` is true.
        """
        pause_s = FIRST_PAUSE_S
        quiet_since_s = time.monotonic()
        deadline_s = quiet_since_s + BUSY_TIMEOUT_S
        earlier_missing: dict[str, int] | None = None
        while True:
            self._request_reports()
            missing = self._count_unprocessed()
            now_s = time.monotonic()
            are_idle = all(reply.idle for reply in self._replies.values())
            if are_idle and not missing:
                return {}
            if not are_idle or missing != earlier_missing:
                quiet_since_s = now_s
                earlier_missing = missing
            elif now_s - quiet_since_s > LOST_AFTER_S:
                if lossless:
                    lost = ", ".join(f"{count} on {where}" for where, count in missing.items())
                    raise PlayerError(f"messages were lost: {lost}; lockstep needs reliable subscriptions")
                return missing
            if now_s > deadline_s:
                busy = ", ".join(sorted(reply.node for reply in self._replies.values() if not reply.idle))
                raise PlayerError(f"still busy after {BUSY_TIMEOUT_S:.0f} s: {busy or 'no node reports work'}")
            self._spin_until(now_s + pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _request_reports(self) -> None:
        """Ask every node for its report, and wait for the replies."""
        has_replied = self._drain_client.request(self._expected)
        self._wait_until(has_replied, REPLY_TIMEOUT_S, "the nodes to say whether they are done")

    @property
    def _replies(self) -> dict[str, DrainReport]:
        return {name: self._drain_client.replies[name] for name in self._expected}

    def _count_unprocessed(self) -> dict[str, int]:
        """Count the messages that were published and not processed, by subscriber and topic."""
        published = Counter(self._sent)
        for _, topic, count in self._count_since_start("published"):
            published[topic] += count
        processed = {(node, topic): count for node, topic, count in self._count_since_start("processed")}
        if self._replies_at_start:
            processed |= {(self._node.get_name(), topic): self._received[topic] for topic in OUTPUT_TOPICS}
        return {
            f"{topic} to {node}": published[topic] - count
            for (node, topic), count in processed.items()
            if count != published[topic]
        }

    def _count_since_start(self, direction: str) -> list[tuple[str, str, int]]:
        """Count messages by node and topic; `direction` is "published" or "processed"."""
        rows = []
        for node, reply in self._replies.items():
            counts = getattr(reply, direction)
            at_start = getattr(self._replies_at_start.get(node, reply), direction)
            rows += [(node, topic, count - at_start.get(topic, 0)) for topic, count in counts.items()]
        return rows

    def _on_status(self, message: Any) -> None:
        status = from_ros(MonitorStatus, message)
        if status.node in self._expected:
            self._statuses[status.node] = status
            self._print_line(full_topic(STATUS_TOPIC), to_plain(status))

    def _on_output(self, topic: str, record_type: type, message: Any) -> None:
        self._received[topic] += 1
        self._print_line(topic, to_plain(from_ros(record_type, message)))

    def _print_line(self, topic: str, content: dict[str, Any]) -> None:
        """Print one line. `at_ns` is the position in the bag at that moment."""
        at_ns = int(self._at_ns)
        if not self._in_lockstep and self._began_s:
            at_ns = int(self._first_ns + (time.monotonic() - self._began_s) * self._rate * NS_PER_S)
        wall_s = time.monotonic() - self._began_s
        print(json.dumps({"topic": topic, "at_ns": at_ns, "wall_s": wall_s, "message": content}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
