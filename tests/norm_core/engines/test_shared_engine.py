from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from norm_core.engines.engine import Engine
from norm_core.engines.engine_pool import EngineLease, SharedEngine, Urgency
from norm_core.engines.prompt import Question
from norm_core.engines.request_context import Deadline, RequestContext
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import NS_PER_MS, WallClock
from tests.norm_core.engines.contract import OPTIONS, QUESTIONS, SCENE, score
from tests.norm_core.engines.scripted import ScriptedBackend
from tests.patience import PATIENCE_S


class Gate:
    """Holds the model's first question until it is opened, and keeps the order in which questions were answered."""

    def __init__(self) -> None:
        self.entered, self.opened = Event(), Event()
        self.order: list[str] = []

    def act(self, question: Question, call: RequestContext) -> Sequence[float]:
        self.entered.set()
        assert self.opened.wait(PATIENCE_S)
        self.order.append(question.options[0])
        return [0.0] * len(question.options)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def shared(gate: Gate) -> Iterator[SharedEngine]:
    engine = SharedEngine(Engine(ScriptedBackend(gate.act), WallClock()), capacity=2)
    yield engine
    gate.opened.set()
    assert engine.close(PATIENCE_S)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def admitted(shared: SharedEngine, count: int) -> None:
    """Waits until the engine has received count requests."""
    done = Event()
    for _ in range(int(PATIENCE_S / 0.005)):
        if shared.status().received >= count:
            return
        done.wait(0.005)
    raise AssertionError(f"only {shared.status().received} of {count} requests came")


def test_an_action_goes_before_a_window(shared: SharedEngine, gate: Gate, pool: ThreadPoolExecutor) -> None:
    asked = []
    for count, (name, urgency) in enumerate(
        [("first", Urgency.WINDOW), ("window", Urgency.WINDOW), ("action", Urgency.ACTION)], start=1
    ):
        asked.append(pool.submit(score, EngineLease(shared, urgency), SCENE, (name, "other")))
        admitted(shared, count)
        assert gate.entered.wait(PATIENCE_S)
    gate.opened.set()
    assert [future.result(PATIENCE_S).outcome for future in asked] == [Outcome.ANSWERED] * 3
    assert gate.order == ["first", "action", "window"]


def test_the_oldest_of_the_least_urgent_gives_way(shared: SharedEngine, gate: Gate, pool: ThreadPoolExecutor) -> None:
    asked = {}
    names = ["first", "action", "old window", "new window"]
    for count, name in enumerate(names, start=1):
        urgency = Urgency.ACTION if name == "action" else Urgency.WINDOW
        asked[name] = pool.submit(score, EngineLease(shared, urgency), SCENE, (name, "other"))
        admitted(shared, count)
        assert gate.entered.wait(PATIENCE_S)
    dropped = asked["old window"].result(PATIENCE_S)
    assert (dropped.outcome, shared.status().dropped) == (Outcome.TIMED_OUT, 1)
    assert "gave way" in dropped.reason
    gate.opened.set()
    assert asked["new window"].result(PATIENCE_S).outcome is Outcome.ANSWERED


def test_no_window_slips_in_between_two_questions_of_an_action(
    shared: SharedEngine, gate: Gate, pool: ThreadPoolExecutor
) -> None:
    asked = [pool.submit(score, EngineLease(shared), SCENE, ("first", "other"))]
    assert gate.entered.wait(PATIENCE_S)
    asked.append(pool.submit(score, EngineLease(shared), SCENE, ("window", "other")))
    admitted(shared, 2)
    with shared.hold(Urgency.ACTION):
        gate.opened.set()
        for name in ("viewpoint", "choice"):
            assert score(EngineLease(shared, Urgency.ACTION), SCENE, (name, "other")).outcome is Outcome.ANSWERED
        assert shared.status().depth == 1
    assert [future.result(PATIENCE_S).outcome for future in asked] == [Outcome.ANSWERED] * 2
    assert gate.order == ["first", "viewpoint", "choice", "window"]


def test_a_stuck_model_hangs_nobody(shared: SharedEngine, gate: Gate) -> None:
    clock = WallClock()
    scores = EngineLease(shared).ask_many(SCENE, QUESTIONS, Deadline(clock, clock.now_ns() + 50 * NS_PER_MS))
    assert [answer.outcome for answer in scores] == [Outcome.TIMED_OUT] * 3
    assert (
        score(EngineLease(shared), SCENE, OPTIONS, Deadline(clock, clock.now_ns() + 50 * NS_PER_MS)).outcome
        is Outcome.TIMED_OUT
    )
    gate.opened.set()
    assert score(EngineLease(shared), SCENE, OPTIONS).outcome is Outcome.ANSWERED


def test_closing_declines_what_waits(shared: SharedEngine, gate: Gate, pool: ThreadPoolExecutor) -> None:
    pool.submit(score, EngineLease(shared), SCENE, OPTIONS)
    assert gate.entered.wait(PATIENCE_S)
    waiting = pool.submit(score, EngineLease(shared), SCENE, OPTIONS)
    admitted(shared, 2)
    assert not shared.close(timeout_s=0.01)
    gate.opened.set()
    assert shared.close(PATIENCE_S)
    assert waiting.result(PATIENCE_S).outcome is Outcome.FAILED
    assert score(EngineLease(shared), SCENE, OPTIONS).outcome is Outcome.FAILED
