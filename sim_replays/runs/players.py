"""Players of item bags to the selector, in this process or over DDS."""

import atexit
import json
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from action_selector.selector import SelectorFiles, open_selector
from norm_core.engines.engine import Engine
from norm_core.records.decision import Decision
from norm_core.records.episode import Answer, Query
from norm_core.records.json_codec import from_plain
from norm_core.records.record import record
from norm_core.runtime.time import Clock, WallClock
from norm_monitor.replay.node_driver import lines_of
from norm_monitor.replay.node_process import NodeProcess, claim_domain
from sim_replays.items.item_bag import read_episodes
from sim_replays.runs.asked_model import LoggedModel, ModelRequest, open_model

SELECTOR = "selector"  # the node that answers
MODEL_START_TIMEOUT_S = 600.0  # A node loads its model before it starts.


@record
class RobotAnswer:
    """One answer, its duration in real time, and the requests to the model that it took.

    An answer over DDS has neither the requests nor the decision of the selector.
    """

    answer: Answer
    took_s: float
    requests: tuple[ModelRequest, ...] = ()
    decision: Decision | None = None


class Player(Protocol):
    """What plays a bag, and yields the answers as they come."""

    def play(self, bag: Path, wanted: Collection[str]) -> Iterator[RobotAnswer]:
        """Yield the answers to the queries with these ids, and ask no others."""
        ...

    def close(self) -> None:
        """End what was started."""


class InProcessPlayer:
    """Player to the logic of the node in this process, message by message, without DDS."""

    def __init__(self, config: SelectorFiles, model: Engine | None = None, clock: Clock | None = None) -> None:
        """Open the selector of these settings, around the model that they name, if any."""
        self._model = LoggedModel(model) if model else None
        self._selector = open_selector(config, clock or WallClock(), engine=self._model)

    def play(self, bag: Path, wanted: Collection[str]) -> Iterator[RobotAnswer]:
        """Yield the answers to the wanted queries."""
        for episode in read_episodes(bag):
            for entry in episode:
                if isinstance(entry, Query) and entry.query_id not in wanted:
                    continue
                began_s = time.perf_counter()
                for due_request in self._selector.take(entry):
                    recommended = self._selector.decide(due_request)
                    if recommended.answer:
                        requests = self._model.end_question() if self._model else ()
                        yield RobotAnswer(
                            answer=recommended.answer,
                            took_s=time.perf_counter() - began_s,
                            requests=requests,
                            decision=recommended.decision,
                        )

    def close(self) -> None:
        """Do nothing: the model goes with its process."""


class DdsPlayer:
    """Player to a node in a process of its own, which lives until this one ends.

    Each bag is played by a further process, which waits for every acknowledgement and answer.
    """

    def __init__(self, config: SelectorFiles) -> None:
        """Start the node, which loads its model."""
        parameters = config.model_dump(mode="json", exclude_defaults=True)
        self._stack = ExitStack()
        self._domain_id = self._stack.enter_context(claim_domain())
        self._node = self._stack.enter_context(
            NodeProcess([SELECTOR], {SELECTOR: parameters}, self._domain_id, start_timeout_s=MODEL_START_TIMEOUT_S)
        )
        atexit.register(self.close)

    def close(self) -> None:
        """End the node."""
        atexit.unregister(self.close)
        self._stack.close()

    def play(self, bag: Path, wanted: Collection[str]) -> Iterator[RobotAnswer]:
        """Yield the answers to the wanted queries as the node publishes them.

        Raises TransportError if the node or the player ends early.
        """
        with tempfile.TemporaryDirectory(prefix="tactful-") as folder:
            ids_path = Path(folder) / "wanted.json"
            ids_path.write_text(json.dumps(sorted(wanted)), encoding="utf-8")
            command = [sys.executable, "-m", "norm_bench.item_player", str(bag), str(ids_path), SELECTOR]
            for line in lines_of(command, self._domain_id, [self._node]):
                yield RobotAnswer(answer=from_plain(Answer, line["answer"]), took_s=line["took_s"])


def open_players(config: SelectorFiles, transport: str, hosts: int, seed: int) -> list[Player]:
    """Open a player for each item that is played at the same time; those in this process share one model."""
    if transport == "dds":
        return [DdsPlayer(config) for _ in range(hosts)]
    model = open_model(config.model, WallClock(), seed) if config.model else None
    return [InProcessPlayer(config, model) for _ in range(hosts)]
