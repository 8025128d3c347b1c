"""Play a bag of benchmark items to the node that answers them over DDS, and print the answers.

The player sends a query only after the node has processed everything that precedes it.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from norm_nodes.base.convert import from_ros, record_class, to_ros
from norm_nodes.base.endpoint import EVENTS
from norm_nodes.stand_ins.bag_player import PLAYED
from rclpy.publisher import Publisher

from norm_bench.drain import DrainReport
from norm_bench.player import Player, PlayerError, run_player
from norm_core.files.plain_file import read_plain_file
from norm_core.records.episode import Answer, Episode, Query
from norm_core.records.frame import Frame
from norm_core.records.json_codec import to_plain
from norm_core.records.speech import Utterance
from norm_core.records.topics import ANSWERS_TOPIC, NAMESPACE, full_topic
from sim_replays.items.item_bag import EPISODES, FRAMES, QUERIES, UTTERANCES, Record, read_episodes

TOPICS: dict[type, str] = {Episode: EPISODES, Frame: FRAMES, Utterance: UTTERANCES, Query: QUERIES}
# The largest file of ids.
MAX_BYTES = 64 << 20
ANSWERS = full_topic(ANSWERS_TOPIC)
# How many messages are sent before the node must have processed them. The queues of its subscribers hold 50.
MAX_UNPROCESSED = 25
# How long the player waits until it and the node have discovered each other.
MATCH_TIMEOUT_S = 20.0
# How long the node may take to process the messages sent.
PROCESS_TIMEOUT_S = 30.0
# How long it may take to answer a query.
ANSWER_TIMEOUT_S = 600.0


def main() -> int:
    """Print a line of JSON for each answer. The arguments: the bag, a file of the ids to ask, the answering node."""
    bag, ids, node = sys.argv[1:]
    wanted = frozenset(json.loads(read_plain_file(Path(ids), MAX_BYTES)))
    return run_player(lambda: ItemPlayer(node, wanted).play(Path(bag)))


class ItemPlayer(Player):
    """Publish the items of a bag, and wait until the node has processed them and answered each query."""

    def __init__(self, name: str, wanted: frozenset[str]) -> None:
        super().__init__("lockstep")
        self._name = f"{NAMESPACE}/{name}"
        self._wanted = wanted
        self._publishers: dict[type, Publisher] = {
            kind: self._node.create_publisher(record_class(kind), topic, PLAYED) for kind, topic in TOPICS.items()
        }
        self._node.create_subscription(record_class(Answer), ANSWERS, self._on_answer, EVENTS)
        self._asked_s: dict[str, float] = {}
        self._sent: Counter[str] = Counter()
        self._processed_at_start: dict[str, int] = {}
        self._unprocessed = 0

    def play(self, bag: Path) -> None:
        """Play every episode that contains a selected query."""
        self._wait_until(self._is_matched, MATCH_TIMEOUT_S, self._name)
        self._await_publishers_matched()
        for episode in read_episodes(bag):
            if not any(isinstance(entry, Query) and entry.query_id in self._wanted for entry in episode):
                continue
            for entry in episode:
                if isinstance(entry, Query) and entry.query_id not in self._wanted:
                    continue
                self._send(entry)

    def _send(self, entry: Record) -> None:
        kind = type(entry)
        if isinstance(entry, Query):
            self._await_processed()
            self._asked_s[entry.query_id] = time.perf_counter()
            self._publishers[kind].publish(to_ros(entry))
            self._wait_until(lambda: not self._asked_s, ANSWER_TIMEOUT_S, f"the answer to {entry.query_id}")
            return
        self._publishers[kind].publish(to_ros(entry))
        self._sent[TOPICS[kind]] += 1
        self._unprocessed += 1
        if self._unprocessed >= MAX_UNPROCESSED:
            self._await_processed()

    def _await_publishers_matched(self) -> None:
        """Wait until the node has discovered every publisher; earlier messages would be lost."""
        deadline_s = time.monotonic() + MATCH_TIMEOUT_S
        while not all((report := self._request_report()).publisher_counts.get(topic) for topic in TOPICS.values()):
            if time.monotonic() > deadline_s:
                raise PlayerError(f"waited {MATCH_TIMEOUT_S:.0f} s in vain for {self._name} to be connected")
        self._processed_at_start = report.processed

    def _await_processed(self) -> None:
        """Wait until the node reports that it has processed every message.

        The middleware's own acknowledgement would come only with its heartbeat, every three seconds.
        """
        deadline_s = time.monotonic() + PROCESS_TIMEOUT_S
        while self._unprocessed:
            processed = self._request_report().processed
            if all(processed[topic] - self._processed_at_start[topic] >= count for topic, count in self._sent.items()):
                self._unprocessed = 0
            elif time.monotonic() > deadline_s:
                raise PlayerError(f"waited {PROCESS_TIMEOUT_S:.0f} s in vain for {self._name} to take what was sent")

    def _request_report(self) -> DrainReport:
        """Ask the node which messages it has processed."""
        self._wait_until(self._drain_client.request({self._name}), PROCESS_TIMEOUT_S, "its reply")
        return self._drain_client.replies[self._name]

    def _on_answer(self, message: Any) -> None:
        answer = from_ros(Answer, message)
        asked_s = self._asked_s.pop(answer.query_id, None)
        if asked_s is not None:
            took_s = time.perf_counter() - asked_s
            print(json.dumps({"took_s": took_s, "answer": to_plain(answer)}), flush=True)

    def _is_matched(self) -> bool:
        has_subscribers = all(publisher.get_subscription_count() for publisher in self._publishers.values())
        return has_subscribers and self._drain_client.has_nodes(1) and bool(self._node.count_publishers(ANSWERS))

    def _wait_until(self, condition: Callable[[], bool], within_s: float, event: str) -> None:
        was_matched = self._is_matched()

        def is_met() -> bool:
            if condition():
                return True
            if was_matched and not self._is_matched():
                raise PlayerError(f"{self._name} went away before {event}")
            return False

        super()._wait_until(is_met, within_s, event)


if __name__ == "__main__":
    sys.exit(main())
