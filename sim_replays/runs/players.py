"""Play a bag of items to the selector or the judge, in this process or over DDS, and collect the answers."""

import atexit
import json
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from action_selector.selector import Recommendation, SelectorFiles, open_selector
from norm_core.engines.engine import Engine
from norm_core.records.decision import Decision
from norm_core.records.episode import Answer, Query
from norm_core.records.json_codec import from_plain
from norm_core.records.record import record
from norm_core.runtime.time import Clock, WallClock
from norm_core.streams.recent_records import RecentRecords
from norm_monitor.replay.node_driver import lines_of
from norm_monitor.replay.node_process import NodeProcess, claim_domain
from sim_replays.items.item_bag import Record, episodes
from sim_replays.runs.asked_model import AskedModel, AskedRequest, open_model
from sim_replays.runs.robot_config import AnswererConfig, JudgeAnswererConfig
from sim_replays.suites.suite_questions import SuiteAnswerer

MODEL_LOADED_WITHIN_S = 600.0


@record
class RobotAnswer:
    """One answer, its wall-clock duration, and the requests to the model that it took.

    The selector's decision and the requests are there unless the answer came over DDS.
    """

    answer: Answer
    took_s: float
    requests: tuple[AskedRequest, ...] = ()
    decision: Decision | None = None


class Player(Protocol):
    """Play a bag, and yield the answers as they come."""

    def play(self, bag: Path, wanted: Collection[str]) -> Iterator[RobotAnswer]:
        """Ask only the queries with these ids."""
        ...

    def close(self) -> None:
        """End what was started."""


class Answerer(Protocol):
    """Processes an episode's records in order, and answers its queries."""

    def take(self, record: Record) -> Iterator[Answer | Recommendation]:
        """Yield the answers that are known after this record."""


class SelectorAnswerer:
    """The selector."""

    def __init__(self, files: SelectorFiles, clock: Clock, model: Engine | None = None) -> None:
        """Load the selector's files; `model` is the one that they name, if any."""
        self._selector = open_selector(files, clock, engine=model)

    def take(self, record: Record) -> Iterator[Recommendation]:
        """Decide the queries that are due after this record; a dropped one has no answer."""
        yield from map(self._selector.decide, self._selector.take(record))


class JudgeAnswerer:
    """The judge, with the logic by which the monitor node answers queries."""

    def __init__(self, config: JudgeAnswererConfig, clock: Clock, model: Engine) -> None:
        self._questioner = SuiteAnswerer(model, config.suite, config.rules)
        self._recent, self._clock = RecentRecords(config.suite.window_s), clock

    def take(self, record: Record) -> Iterator[Answer]:
        """Answer a query from the records before it; hold any other record."""
        if isinstance(record, Query):
            yield self._questioner.answer(record, *self._questioner.asked(record, self._recent, self._clock))
        else:
            self._recent.add(record)


def open_answerer(config: AnswererConfig, clock: Clock, model: Engine | None) -> Answerer:
    """Create the answerer of the settings; `model` is None where the selector has none."""
    if isinstance(config, JudgeAnswererConfig):
        assert model
        return JudgeAnswerer(config, clock, model)
    return SelectorAnswerer(config, clock, model)


class InProcess:
    """Run the node's own logic in this process, message by message, without DDS."""

    def __init__(self, config: AnswererConfig, model: Engine | None = None, clock: Clock | None = None) -> None:
        """Open the answerer around a model, if it has one."""
        self._model = AskedModel(model) if model else None
        self._answerer = open_answerer(config, clock or WallClock(), self._model)

    def play(self, bag: Path, wanted: Collection[str]) -> Iterator[RobotAnswer]:
        """Yield the answers to the wanted queries."""
        for episode in episodes(bag):
            for entry in episode:
                if isinstance(entry, Query) and entry.query_id not in wanted:
                    continue
                began_s = time.perf_counter()
                for reply in self._answerer.take(entry):
                    answer, decision = (reply, None) if isinstance(reply, Answer) else (reply.answer, reply.decision)
                    if answer:
                        requests = self._model.end_question() if self._model else ()
                        took_s = time.perf_counter() - began_s
                        yield RobotAnswer(answer=answer, took_s=took_s, requests=requests, decision=decision)

    def close(self) -> None:
        """Do nothing: the model goes with its process."""


class OverDds:
    """Run the answering node in a process of its own until this one ends, and for each bag a player of it.

    The player waits for every acknowledgement and answer.
    """

    def __init__(self, config: AnswererConfig) -> None:
        """Start the node, which loads its model."""
        node, parameters = "selector", config.model_dump(mode="json", exclude_defaults=True)
        if isinstance(config, JudgeAnswererConfig):
            node, parameters = (
                "monitor",
                {
                    "judge": {"model": config.model, **config.rules.model_dump(mode="json", exclude_defaults=True)},
                    "suite": {"answers_queries": True, **config.suite.model_dump(mode="json", exclude_defaults=True)},
                },
            )
        self._stack = ExitStack()
        self._node_name, self._domain_id = node, self._stack.enter_context(claim_domain())
        self._node = self._stack.enter_context(
            NodeProcess([node], {node: parameters}, self._domain_id, start_timeout_s=MODEL_LOADED_WITHIN_S)
        )
        atexit.register(self.close)

    def close(self) -> None:
        """End the node."""
        atexit.unregister(self.close)
        self._stack.close()

    def play(self, bag: Path, wanted: Collection[str]) -> Iterator[RobotAnswer]:
        """Yield the answers to the wanted queries as the node publishes them. Raises TransportError."""
        with tempfile.TemporaryDirectory(prefix="tactful-") as folder:
            ids = Path(folder) / "wanted.json"
            ids.write_text(json.dumps(sorted(wanted)), encoding="utf-8")
            command = [sys.executable, "-m", "norm_bench.item_player", str(bag), str(ids), self._node_name]
            for line in lines_of(command, self._domain_id, [self._node]):
                yield RobotAnswer(answer=from_plain(Answer, line["answer"]), took_s=line["took_s"])


def open_players(config: AnswererConfig, transport: str, hosts: int, seed: int) -> list[Player]:
    """Open as many players as items are played side by side; those in this process share one model."""
    if transport == "dds":
        return [OverDds(config) for _ in range(hosts)]
    model = open_model(config.model, WallClock(), seed) if config.model else None
    return [InProcess(config, model) for _ in range(hosts)]
