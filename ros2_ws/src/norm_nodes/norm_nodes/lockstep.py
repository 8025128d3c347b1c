"""Plays a bag of benchmark items to a selector over DDS, message by message acknowledged, and prints the answers."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import rclpy
from rclpy.experimental import EventsExecutor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import Header

from norm_core.episode import Answer, Query
from norm_core.error import TactfulError
from norm_core.jsonl import to_plain
from norm_core.time import NS_PER_S, join_stamp
from norm_nodes.bag_player import PLAYED
from norm_nodes.convert import from_ros, record_class, to_ros
from norm_nodes.endpoint import EVENTS
from sim_replays.runs.bag import EPISODES, FRAMES, QUERIES, UTTERANCES, Record, episodes

TOPICS = {"Episode": EPISODES, "Frame": FRAMES, "Utterance": UTTERANCES, "Query": QUERIES}
ANSWERS, TAKEN = "/tactful/answers", "/tactful/taken"
MATCHED_WITHIN_S, TAKEN_WITHIN_S, ANSWERED_WITHIN_S = 20.0, 30.0, 600.0
SPIN_S = 0.2


class LockstepError(TactfulError, RuntimeError):
    """The selector was not found, or no longer answers."""

    exit_code = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a line of JSON for each answer; ends with its parent."""
    parser = argparse.ArgumentParser(prog="lockstep", description=__doc__)
    parser.add_argument("bag", type=Path)
    parser.add_argument("wanted", type=Path, help="JSON list of the ids of the queries to ask")
    parser.add_argument("--rate", type=float, default=0.0, help="0: as fast as it is answered; else times its pace")
    options = parser.parse_args(arguments)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        Driver(frozenset(json.loads(options.wanted.read_text(encoding="utf-8"))), options.rate).play(options.bag)
    except TactfulError as error:
        print(f"tactful: {error}", file=sys.stderr)
        return error.exit_code
    finally:
        rclpy.try_shutdown()
    return 0


class Driver:
    """Publishes, awaits the acknowledgement and then, in lockstep, the answer."""

    def __init__(self, wanted: frozenset[str], rate: float) -> None:
        self._wanted, self._rate = wanted, rate
        self._parent = os.getppid()
        self._node = Node("lockstep", namespace="tactful", enable_rosout=False, start_parameter_services=False)
        self._executor = EventsExecutor()
        self._executor.add_node(self._node)
        self._publishers: dict[str, Publisher] = {
            name: self._node.create_publisher(_class_called(name), topic, PLAYED) for name, topic in TOPICS.items()
        }
        self._node.create_subscription(record_class(Answer), ANSWERS, self._on_answer, EVENTS)
        self._node.create_subscription(Header, TAKEN, self._on_taken, EVENTS)
        self._asked_s: dict[str, float] = {}
        self._untaken: set[tuple[str, int]] = set()

    def play(self, bag: Path) -> None:
        """Every episode in which something is wanted."""
        self._until(self._is_matched, MATCHED_WITHIN_S, "the selector")
        started_s, first_ns = time.monotonic(), -1
        for episode in episodes(bag):
            if not any(isinstance(entry, Query) and entry.query_id in self._wanted for entry in episode):
                continue
            for entry in episode:
                if isinstance(entry, Query) and entry.query_id not in self._wanted:
                    continue
                first_ns = entry.stamp_ns if first_ns < 0 else first_ns
                if self._rate:
                    self._wait_until(started_s + (entry.stamp_ns - first_ns) / NS_PER_S / self._rate)
                self._send(entry)
        self._until(lambda: not self._asked_s, ANSWERED_WITHIN_S, "the last answers")

    def _send(self, entry: Record) -> None:
        kind = type(entry).__name__
        if isinstance(entry, Query):
            self._asked_s[entry.query_id] = time.perf_counter()
            self._publishers[kind].publish(to_ros(entry))
            if not self._rate:
                self._until(lambda: not self._asked_s, ANSWERED_WITHIN_S, f"the answer to {entry.query_id}")
            return
        # Told by the node itself: the middleware acknowledges only with its heartbeat, every three seconds.
        self._untaken.add((kind, entry.stamp_ns))
        self._publishers[kind].publish(to_ros(entry))
        self._until(lambda: not self._untaken, TAKEN_WITHIN_S, f"the selector to take a message of {kind}")

    def _on_taken(self, message: Any) -> None:
        self._untaken.discard((message.frame_id, join_stamp(message.stamp.sec, message.stamp.nanosec)))

    def _on_answer(self, message: Any) -> None:
        answer = from_ros(Answer, message)
        asked_s = self._asked_s.pop(answer.query_id, None)
        if asked_s is not None:
            took_s = time.perf_counter() - asked_s
            print(json.dumps({"took_s": took_s, "answer": to_plain(answer)}), flush=True)

    def _is_matched(self) -> bool:
        heard = all(publisher.get_subscription_count() for publisher in self._publishers.values())
        return heard and all(self._node.count_publishers(topic) for topic in (ANSWERS, TAKEN))

    def _until(self, condition: Callable[[], bool], within_s: float, what: str) -> None:
        deadline_s = time.monotonic() + within_s
        was_matched = self._is_matched()
        while not condition():
            if time.monotonic() > deadline_s:
                raise LockstepError(f"waited {within_s:.0f} s in vain for {what}")
            if os.getppid() != self._parent or (was_matched and not self._is_matched()):
                raise LockstepError(f"the selector went away before {what}")
            self._executor.spin_once(timeout_sec=SPIN_S)

    def _wait_until(self, due_s: float) -> None:
        while (left_s := due_s - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=left_s)


def _class_called(name: str) -> Any:
    return {cls.__name__: record_class(cls) for cls in Record.__args__}[name]


if __name__ == "__main__":
    sys.exit(main())
