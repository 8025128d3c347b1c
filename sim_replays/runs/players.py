"""Players of item bags: to the selector or the judge, in this process or over DDS."""

import atexit
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from action_selector.selector import Recommendation, open_selector
from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.engine import Engine
from norm_core.engines.engine_factory import open_engine
from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import EngineKind
from norm_core.records.decision import Decision
from norm_core.records.episode import Answer, Query
from norm_core.records.json_codec import from_plain
from norm_core.records.record import record
from norm_core.runtime.time import Clock, WallClock
from norm_core.streams.recent_records import RecentRecords
from norm_monitor.replay.node_driver import ANSWERS, play_to_running_nodes
from norm_monitor.replay.node_process import NodeProcess, claim_domain
from sim_replays.items.item_bag import QUERIES, Record, read_records
from sim_replays.runs.random_model import RANDOM, RandomBackend
from sim_replays.runs.robot_config import AnswererConfig, JudgeAnswererConfig
from sim_replays.suites.suite_questions import SuiteAnswerer

MODEL_START_TIMEOUT_S = 600.0  # A node loads its model before it starts.


@record
class RobotAnswer:
    """One answer, its duration in real time, and the decision of the selector; over DDS, without the decision."""

    answer: Answer
    took_s: float
    decision: Decision | None = None


class Player(Protocol):
    """What plays a bag, and yields the answers as they come."""

    def play(self, bag: Path) -> Iterator[RobotAnswer]:
        """Yield the answers to the queries in a bag."""
        ...

    def close(self) -> None:
        """End what was started."""


def open_answerer(
    config: AnswererConfig, clock: Clock, model: Engine | None
) -> Callable[[Record], Iterable[Answer | Recommendation]]:
    """Open the selector, or the judge as the monitor node asks it; return what yields the answers due after a record.

    The records of an episode come in order. `model` is None where the selector has none.
    """
    if not isinstance(config, JudgeAnswererConfig):
        selector = open_selector(config, clock, engine=model)
        return lambda record: map(selector.decide, selector.take(record))
    assert model
    judge = SuiteAnswerer(model, config.suite, config.rules)
    recent_records = RecentRecords(config.suite.window_s)

    def answer_query(record: Record) -> Iterator[Answer]:
        if isinstance(record, Query):
            window, deadline = judge.find_window(record, recent_records, clock)
            yield judge.answer(record, window, deadline)
        else:
            recent_records.add(record)

    return answer_query


class InProcessPlayer:
    """Player to the logic of the node in this process, message by message, without DDS."""

    def __init__(self, config: AnswererConfig, model: Engine | None) -> None:
        """Open the answerer around a model, if it has one."""
        self._answer = open_answerer(config, WallClock(), model)

    def play(self, bag: Path) -> Iterator[RobotAnswer]:
        """Yield the answers to the queries."""
        for entry in read_records(bag):
            began_s = time.perf_counter()
            for reply in self._answer(entry):
                answer, decision = (reply, None) if isinstance(reply, Answer) else (reply.answer, reply.decision)
                if answer:
                    yield RobotAnswer(answer=answer, took_s=time.perf_counter() - began_s, decision=decision)

    def close(self) -> None:
        """Do nothing: the model goes with its process."""


class DdsPlayer:
    """Player to a node in a process of its own, which lives until this one ends.

    Each bag is played by a further process, in lockstep: it waits until each query is answered.
    """

    def __init__(self, config: AnswererConfig) -> None:
        """Start the node, which loads its model."""
        if isinstance(config, JudgeAnswererConfig):
            node_name = "monitor"
            parameters = {
                "judge": {"model": config.model, **config.rules.model_dump(mode="json", exclude_defaults=True)},
                "suite": {"answers_queries": True, **config.suite.model_dump(mode="json", exclude_defaults=True)},
            }
        else:
            node_name = "selector"
            parameters = config.model_dump(mode="json", exclude_defaults=True)
        self._stack = ExitStack()
        self._domain_id = self._stack.enter_context(claim_domain())
        self._node = self._stack.enter_context(
            NodeProcess([node_name], {node_name: parameters}, self._domain_id, start_timeout_s=MODEL_START_TIMEOUT_S)
        )
        atexit.register(self.close)

    def close(self) -> None:
        """End the node."""
        atexit.unregister(self.close)
        self._stack.close()

    def play(self, bag: Path) -> Iterator[RobotAnswer]:
        """Yield the answers to the queries as the node publishes them.

        Raises TransportError if the node or the player ends early.
        """
        asked_s: dict[str, float] = {}
        for output in play_to_running_nodes(bag, [self._node], self._domain_id, "--goes-on"):
            if output.topic == QUERIES:
                asked_s[output.message["query_id"]] = output.wall_s
            elif output.topic == ANSWERS:
                answer = from_plain(Answer, output.message)
                yield RobotAnswer(answer=answer, took_s=output.wall_s - asked_s[answer.query_id])


def open_model(name: str, clock: Clock, seed: int = 0) -> DirectEngine:
    """Open a model by name, which may take long; the name `random` opens one that answers at random, by the seed."""
    if name == RANDOM:
        return DirectEngine(RandomBackend(seed), clock)
    manifest = Catalogue().read_manifest(name)
    if manifest.engine is EngineKind.OPENAI:
        manifest = manifest.model_copy(update={"settings": {"answers": "auto", **manifest.settings}})
    return open_engine(manifest, clock)


def open_players(config: AnswererConfig, transport: str, hosts: int, seed: int) -> list[Player]:
    """Open a player for each item that is played at the same time; those in this process share one model."""
    if transport == "dds":
        return [DdsPlayer(config) for _ in range(hosts)]
    model = open_model(config.model, WallClock(), seed) if config.model else None
    return [InProcessPlayer(config, model) for _ in range(hosts)]
