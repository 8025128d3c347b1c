"""Who names the same model shares one engine, asks with an own urgency, and the last to go closes it."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from norm_core.engines import engine_registry
from norm_core.engines.engine_pool import EngineLease, EnginePool, Urgency
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.prompt import Question
from norm_core.engines.request_context import RequestContext
from norm_core.models.manifest import EngineKind, Manifest
from norm_core.models.store import ModelFiles
from norm_core.records.outcome import Outcome
from norm_core.runtime.config import ConfigError
from norm_core.runtime.time import WallClock
from tests.norm_core.engines.contract import OPTIONS, SCENE, EngineContract, score
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
def opener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    for name in (NAME, "other"):
        describe_model(tmp_path, name, DEAD_URL)
    monkeypatch.setenv("TACTFUL_MODELS", str(tmp_path))
    opener = Opener()
    monkeypatch.setitem(engine_registry.OPENERS, EngineKind.OPENAI, opener)
    return opener


@pytest.fixture
def pool() -> EnginePool:
    return EnginePool(WallClock())


class TestLease(EngineContract):
    @pytest.fixture
    def engine(self, opener: Opener, pool: EnginePool) -> Iterator[EngineLease]:
        lease = pool.lease(NAME, Urgency.WINDOW)
        yield lease
        lease.close()


def test_one_engine_a_name_which_the_last_lease_closes(opener: Opener, pool: EnginePool) -> None:
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


def test_of_many_threads_one_opens(opener: Opener, pool: EnginePool) -> None:
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
