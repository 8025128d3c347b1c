"""Deliver a bag's items to the answerer and collect answers, in this process or over DDS."""

import json
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from norm_core.records.episode import Answer, Query
from norm_core.records.json_codec import from_json
from norm_core.records.record import record
from norm_core.runtime.time import Clock, WallClock
from sim_replays.drivers.node_driver import TransportError, lines_of
from sim_replays.drivers.node_process import NodeProcess
from sim_replays.drivers.ros_domain import claimed_domain
from sim_replays.runs.answerers import Answerer, AnswererConfig, node_of, open_answerer
from sim_replays.runs.items.item_bag import episodes

__all__ = ["Dds", "Direct", "TimedAnswer", "Transport", "TransportError", "timed_answer_of"]

MODEL_LOADED_WITHIN_S = 600.0


@record
class TimedAnswer:
    """One answer and its wall-clock duration."""

    answer: Answer
    took_s: float


def timed_answer_of(line: dict[str, Any]) -> TimedAnswer:
    """Parse a line of a node player or a shard."""
    return TimedAnswer(answer=from_json(Answer, json.dumps(line["answer"])), took_s=line["took_s"])


class Transport(Protocol):
    """Play a bag, and yield the answers as they come."""

    def play(self, bag: Path, wanted: Collection[str]) -> Iterator[TimedAnswer]:
        """Ask only the queries with these ids. Skips episodes without any of them."""
        ...


class Direct:
    """Run the node's own logic in this process, message by message, without DDS."""

    def __init__(self, files: AnswererConfig, clock: Clock | None = None, *, answerer: Answerer | None = None) -> None:
        """Open the answerer that the files name, unless one is given."""
        self._answering = answerer or open_answerer(files, clock or WallClock())

    def play(self, bag: Path, wanted: Collection[str]) -> Iterator[TimedAnswer]:
        """Yield the answers to the wanted queries; episodes without one are left out."""
        for episode in episodes(bag):
            if not any(isinstance(entry, Query) and entry.query_id in wanted for entry in episode):
                continue
            for entry in episode:
                if isinstance(entry, Query) and entry.query_id not in wanted:
                    continue
                began_s = time.perf_counter()
                for answer in self._answering.take(entry):
                    yield TimedAnswer(answer=answer, took_s=time.perf_counter() - began_s)


class Dds:
    """Run the answering node in one process, and a player of the bag in another.

    If `rate` is 0, the player waits for every acknowledgement and answer. Above 0, it plays at that multiple of the
    bag's pace; a node that falls behind refuses questions, and the outcome counts them.
    """

    def __init__(self, files: AnswererConfig, rate: float = 0.0, domain_id: int | None = None) -> None:
        self._node, self._parameters = node_of(files)
        self._rate, self._domain_id = rate, domain_id

    def play(self, bag: Path, wanted: Collection[str]) -> Iterator[TimedAnswer]:
        """Yield the answers to the wanted queries as the node publishes them. Raises TransportError."""
        with ExitStack() as stack:
            domain_id = self._domain_id
            if domain_id is None:
                domain_id = stack.enter_context(claimed_domain())
            parameters = {self._node: self._parameters}
            node = stack.enter_context(
                NodeProcess([self._node], parameters, domain_id, start_timeout_s=MODEL_LOADED_WITHIN_S)
            )
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tactful-")))
            (folder / "wanted.json").write_text(json.dumps(sorted(wanted)), encoding="utf-8")
            command = [
                sys.executable,
                "-m",
                "norm_nodes.item_player",
                str(bag),
                str(folder / "wanted.json"),
                self._node,
            ]
            for line in lines_of([*command, "--rate", str(self._rate)], domain_id, [node]):
                yield timed_answer_of(line)
