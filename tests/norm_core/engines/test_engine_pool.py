"""Who names the same model shares one engine, asks with an own urgency, and the last to go closes it."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event

import pytest

from norm_core.engines import engine_factory
from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.engine_pool import EngineLease, EnginePool, SharedEngine, Urgency
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.prompt import Question
from norm_core.engines.request_context import Deadline, RequestContext
from norm_core.models.manifest import EngineKind, Manifest
from norm_core.models.store import ModelFiles
from norm_core.records.outcome import Outcome
from norm_core.runtime.config import ConfigError
from norm_core.runtime.time import NS_PER_MS, WallClock
from tests.norm_core.engines.contract import OPTIONS, QUESTIONS, SCENE, score
from tests.norm_core.engines.fake_server import DEAD_URL, describe_model
from tests.norm_core.engines.scripted import ScriptedBackend
from tests.patience import PATIENCE_S

NAME = "held"


def equal(question: Question, call: RequestContext) -> Sequence[float]:
    return [0.0] * len(question.options)


class Opener:
    """Stands for the engine of servers; keeps each backend that it opened, and fails while told to."""

    def __init__(self) -> None:
        self.opened: list[ScriptedBackend] = []
        self.act: Callable[[Question, RequestContext], Sequence[float]] = equal
        self.fault: Exception | None = None

    def __call__(self, manifest: Manifest, weights: ModelFiles) -> ScriptedBackend:
        if self.fault:
            raise self.fault
        self.opened.append(ScriptedBackend(self.act))
        return self.opened[-1]


@pytest.fixture
def opener(own_models: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    for name in (NAME, "other"):
        describe_model(own_models, name, DEAD_URL)
    opener = Opener()
    monkeypatch.setitem(engine_factory.OPENERS, EngineKind.OPENAI, opener)
    return opener


@pytest.fixture
def pool() -> EnginePool:
    return EnginePool(WallClock())


def test_the_last_lease_of_a_name_closes_its_engine(opener: Opener, pool: EnginePool) -> None:
    judge, selector, other = (
        pool.lease(name, urgency)
        for name, urgency in ((NAME, Urgency.WINDOW), (NAME, Urgency.ACTION), ("other", Urgency.WINDOW))
    )
    held, apart = opener.opened
    judge.close()
    judge.close()
    assert not held.closed
    assert score(selector, SCENE, OPTIONS).outcome is Outcome.ANSWERED
    selector.close()
    assert held.closed
    assert not apart.closed
    assert score(selector, SCENE, OPTIONS).outcome is Outcome.FAILED
    other.close()
    again = pool.lease(NAME, Urgency.WINDOW)
    assert len(opener.opened) == 3
    assert score(again, SCENE, OPTIONS).outcome is Outcome.ANSWERED
    again.close()


def test_many_threads_open_an_engine_once(opener: Opener, pool: EnginePool) -> None:
    together = Barrier(8)

    def lease_and_close() -> Outcome:
        together.wait(PATIENCE_S)
        lease = pool.lease(NAME, Urgency.WINDOW)
        outcome = score(lease, SCENE, OPTIONS).outcome
        together.wait(PATIENCE_S)
        lease.close()
        return outcome

    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(lease_and_close) for _ in range(8)]
        assert [one.result(PATIENCE_S) for one in asked] == [Outcome.ANSWERED] * 8
    (backend,) = opener.opened
    assert backend.closed


def test_a_failed_opening_names_its_cause_and_is_tried_again(opener: Opener, pool: EnginePool) -> None:
    opener.fault = OSError("no route to the server")
    for _ in range(2):
        with pytest.raises(EngineFailedError, match=f"{NAME}: cannot be loaded: OSError: no route to the server"):
            pool.lease(NAME, Urgency.WINDOW)
    with pytest.raises(ConfigError, match="there is no model 'hold'; did you mean held"):
        pool.lease("hold", Urgency.WINDOW)
    opener.fault = None
    lease = pool.lease(NAME, Urgency.WINDOW)
    assert score(lease, SCENE, OPTIONS).outcome is Outcome.ANSWERED
    lease.close()


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
    engine = SharedEngine(DirectEngine(ScriptedBackend(gate.act), WallClock()), capacity=2)
    yield engine
    gate.opened.set()
    assert engine.close(PATIENCE_S)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


def admitted(shared: SharedEngine, count: int) -> None:
    """Waits until the engine has received count requests."""
    done = Event()
    for _ in range(int(PATIENCE_S / 0.005)):
        if shared.status().received >= count:
            return
        done.wait(0.005)
    raise AssertionError(f"only {shared.status().received} of {count} requests came")


def test_an_action_goes_before_a_window(shared: SharedEngine, gate: Gate, threads: ThreadPoolExecutor) -> None:
    asked = []
    for count, (name, urgency) in enumerate(
        [("first", Urgency.WINDOW), ("window", Urgency.WINDOW), ("action", Urgency.ACTION)], start=1
    ):
        asked.append(threads.submit(score, EngineLease(shared, urgency), SCENE, (name, "other")))
        admitted(shared, count)
        assert gate.entered.wait(PATIENCE_S)
    gate.opened.set()
    assert [future.result(PATIENCE_S).outcome for future in asked] == [Outcome.ANSWERED] * 3
    assert gate.order == ["first", "action", "window"]


def test_a_full_queue_drops_the_oldest_of_the_least_urgent(
    shared: SharedEngine, gate: Gate, threads: ThreadPoolExecutor
) -> None:
    asked = {}
    names = ["first", "action", "old window", "new window"]
    for count, name in enumerate(names, start=1):
        urgency = Urgency.ACTION if name == "action" else Urgency.WINDOW
        asked[name] = threads.submit(score, EngineLease(shared, urgency), SCENE, (name, "other"))
        admitted(shared, count)
        assert gate.entered.wait(PATIENCE_S)
    dropped = asked["old window"].result(PATIENCE_S)
    assert (dropped.outcome, shared.status().dropped) == (Outcome.TIMED_OUT, 1)
    assert "gave way" in dropped.reason
    gate.opened.set()
    assert asked["new window"].result(PATIENCE_S).outcome is Outcome.ANSWERED


def test_a_window_waits_until_all_questions_of_an_action_are_answered(
    shared: SharedEngine, gate: Gate, threads: ThreadPoolExecutor
) -> None:
    asked = [threads.submit(score, EngineLease(shared), SCENE, ("first", "other"))]
    assert gate.entered.wait(PATIENCE_S)
    asked.append(threads.submit(score, EngineLease(shared), SCENE, ("window", "other")))
    admitted(shared, 2)
    with shared.hold(Urgency.ACTION):
        gate.opened.set()
        for name in ("viewpoint", "choice"):
            assert score(EngineLease(shared, Urgency.ACTION), SCENE, (name, "other")).outcome is Outcome.ANSWERED
        assert shared.status().depth == 1
    assert [future.result(PATIENCE_S).outcome for future in asked] == [Outcome.ANSWERED] * 2
    assert gate.order == ["first", "viewpoint", "choice", "window"]


def test_a_stuck_model_times_out_its_callers(shared: SharedEngine, gate: Gate) -> None:
    clock = WallClock()
    scores = EngineLease(shared).ask_many(SCENE, QUESTIONS, Deadline(clock, clock.now_ns() + 50 * NS_PER_MS))
    assert [answer.outcome for answer in scores] == [Outcome.TIMED_OUT] * 3
    assert (
        score(EngineLease(shared), SCENE, OPTIONS, Deadline(clock, clock.now_ns() + 50 * NS_PER_MS)).outcome
        is Outcome.TIMED_OUT
    )
    gate.opened.set()
    assert score(EngineLease(shared), SCENE, OPTIONS).outcome is Outcome.ANSWERED


def test_closing_an_engine_declines_waiting_requests(
    shared: SharedEngine, gate: Gate, threads: ThreadPoolExecutor
) -> None:
    threads.submit(score, EngineLease(shared), SCENE, OPTIONS)
    assert gate.entered.wait(PATIENCE_S)
    waiting = threads.submit(score, EngineLease(shared), SCENE, OPTIONS)
    admitted(shared, 2)
    assert not shared.close(timeout_s=0.01)
    gate.opened.set()
    assert shared.close(PATIENCE_S)
    assert waiting.result(PATIENCE_S).outcome is Outcome.FAILED
    assert score(EngineLease(shared), SCENE, OPTIONS).outcome is Outcome.FAILED
