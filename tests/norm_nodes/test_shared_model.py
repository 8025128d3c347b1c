"""Monitor and selector in one process that name one model: it is opened once, and a goal goes before units."""

import time
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from norm_core.records.outcome import Outcome
from sim_replays.drivers.node_process import NodeProcess
from tests.norm_core.engines.fake_server import FakeServer, describe_model, serving
from tests.norm_nodes.test_monitor_node import TALK, play
from tests.norm_nodes.test_selector import ask
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.ros

QUESTIONS_BEFORE_A_GOAL = 1  # the first about a unit, which the server holds
OF_A_UNIT, OF_A_GOAL = "trained coder of human-robot interaction", "Lay the table."


class Held:
    """Lets the server answer its first request once it is released."""

    def __init__(self, server: FakeServer) -> None:
        self.reached, self.released = Event(), Event()
        server.faults.append(self)

    def __call__(self, handler: Any) -> None:
        self.reached.set()
        assert self.released.wait(PATIENCE_S)
        handler.answer(*handler.server.complete(handler.server.bodies[0]))


def kinds(server: FakeServer) -> list[str]:
    """Who asked each request, in the order of their coming."""
    told = [str(body["messages"]) for body in server.bodies]
    assert all((OF_A_UNIT in text) != (OF_A_GOAL in text) for text in told)
    return ["unit" if OF_A_UNIT in text else "goal" for text in told]


def test_a_goal_is_answered_before_the_units_that_wait(
    domain_id: int, observer: Observer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses = observer.watch_status()

    def depth(node: str, queue: str) -> int:
        of_node = (status for status in reversed(statuses) if status.node == f"/tactful/{node}")
        return next((q.depth for status in of_node for q in status.queues if q.name == queue), 0)

    def release_once_the_goal_waits() -> bool:
        if depth("selector", "engine_shared"):
            first.released.set()
        return first.released.is_set()

    parameters: dict[str, Any] = {
        "monitor": {
            "windows": {"sources": ["utterances"]},
            "judge": {"model": "shared", "calls_per_hour": 3600.0, "deadline_s": 600.0},
        },
        "selector": {"model": "shared", "when_unsure": "best_effort", "longest_s": 600.0},
    }
    with serving() as server:
        first = Held(server)
        describe_model(tmp_path, "shared", server.url)
        monkeypatch.setenv("TACTFUL_MODELS", str(tmp_path))
        with NodeProcess(["monitor", "selector"], parameters, domain_id) as process:
            observer.until(lambda: "encoder is ready" in process.last_output(), "the encoder")
            play(observer, TALK)
            observer.until(first.reached.is_set, "the first unit to be asked about")
            observer.until(lambda: depth("monitor", "to_judge"), "units to wait")
            given = ask(
                observer,
                meanwhile=lambda: observer.until(release_once_the_goal_waits, "the goal to wait for the engine"),
                candidates=["Stir the soup.", OF_A_GOAL],
                deadline_ns=time.time_ns() + int(PATIENCE_S * 1e9),
            )
            observer.until(lambda: "unit" in kinds(server)[-1:], "the next unit")
    decision, _ = given
    assert (decision.outcome, decision.provenance.model) == (Outcome.ANSWERED, "shared")
    asked = kinds(server)
    goals = asked.count("goal")
    assert goals > 1
    assert asked[: QUESTIONS_BEFORE_A_GOAL + goals] == ["unit"] * QUESTIONS_BEFORE_A_GOAL + ["goal"] * goals
    assert len(server.clients) == 1
