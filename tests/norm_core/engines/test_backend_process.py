"""A backend in a child process: its answers are the same, and its crash costs an answer and not this process."""

import os
import signal
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from norm_core.engines.backend_process import BackendProcess
from norm_core.engines.engine import Engine
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.prompt import Question
from norm_core.engines.request_context import RequestContext
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import WallClock
from tests.norm_core.engines.contract import OPTIONS, SCENE, EngineContract, score
from tests.norm_core.engines.minimal_engine import WordsBackend

CRASH = ("crash", "wave")


class CrashingBackend(WordsBackend):
    """Ends with SIGSEGV where it is asked to, as a native library does, or while it is loaded."""

    def __init__(self, *, at_load: bool = False) -> None:
        if at_load:
            os.kill(os.getpid(), signal.SIGSEGV)

    def score(self, prefix: list[str], question: Question, call: RequestContext) -> Sequence[float]:
        if question.options == CRASH:
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().score(prefix, question, call)


def crashing(**settings: Any) -> BackendProcess:
    return BackendProcess(f"{__name__}:CrashingBackend", **settings)


@pytest.fixture(scope="module")
def backend() -> Iterator[BackendProcess]:
    backend = crashing()
    yield backend
    backend.close()


class TestBackendProcess(EngineContract):
    @pytest.fixture
    def engine(self, backend: BackendProcess) -> Engine:
        return Engine(backend, WallClock())


def test_its_answers_are_those_of_the_backend_itself(backend: BackendProcess) -> None:
    in_child, here = (score(Engine(one, WallClock()), SCENE, OPTIONS) for one in (backend, WordsBackend()))
    assert (in_child.probabilities, in_child.usage) == (here.probabilities, here.usage)


def test_a_crash_costs_one_answer_and_is_told() -> None:
    backend = crashing()
    engine = Engine(backend, WallClock())
    assert not engine.health.issues
    crash, before, after = (Question(parts=(), options=options) for options in (CRASH, OPTIONS, OPTIONS))
    answers = engine.ask_many(SCENE, [before, crash, after])
    assert [answer.outcome for answer in answers] == [Outcome.ANSWERED, Outcome.FAILED, Outcome.ANSWERED]
    assert "SIGSEGV" in answers[1].reason
    assert answers[0].probabilities == answers[2].probabilities
    assert "its process ended with SIGSEGV" in engine.health.issues[0]
    assert engine.health.counters[0].count == 1
    engine.close()
    engine.close()


def test_a_model_that_crashes_each_time_is_not_loaded_for_ever() -> None:
    backend = crashing()
    engine = Engine(backend, WallClock())
    reasons = [score(engine, SCENE, CRASH).reason for _ in range(4)]
    assert "3 times in a row" in reasons[3]
    assert engine.health.counters[0].count == 3
    engine.close()


def test_a_crash_while_loading_is_a_failure() -> None:
    with pytest.raises(EngineFailedError, match="ended with SIGSEGV"):
        crashing(at_load=True)
