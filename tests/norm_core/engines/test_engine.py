import math
from collections.abc import Sequence
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.errors import EngineFailedError, RefusedError, UnparsedError, is_out_of_memory
from norm_core.engines.prompt import Prompt, Question
from norm_core.engines.request_context import Deadline, RequestContext
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import ReplayClock, WallClock
from tests.norm_core.engines.contract import OPTIONS, QUESTIONS, SCENE, Deed, picture, score
from tests.norm_core.engines.scripted import ScriptedBackend


def ascending(question: Question, call: RequestContext) -> Sequence[float]:
    return [float(index) for index, _ in enumerate(question.options)]


def raising(error: Exception) -> ScriptedBackend:
    def act(question: Question, call: RequestContext) -> Sequence[float]:
        if question is QUESTIONS[1]:
            raise error
        return ascending(question, call)

    return ScriptedBackend(act)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (EngineFailedError("the server is gone"), Outcome.FAILED),
        (UnparsedError("no letter in sight"), Outcome.UNPARSED),
        (RefusedError("it would rather not"), Outcome.REFUSED),
        (MemoryError(), Outcome.FAILED),
        (ZeroDivisionError("by zero"), Outcome.FAILED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_an_error_of_a_backend_fails_only_its_question(error: Exception, outcome: Outcome) -> None:
    backend = raising(error)
    engine = DirectEngine(backend, WallClock())
    answers = engine.ask_many(SCENE, QUESTIONS)
    assert [scores.outcome for scores in answers] == [Outcome.ANSWERED, outcome, Outcome.ANSWERED]
    counted = [counter.name for counter in engine.health.counters]
    assert counted == ["model_out_of_memory"] * isinstance(error, MemoryError)
    assert answers[1].reason
    assert backend.open_count == 0


@pytest.mark.parametrize("weights", [[1.0], [1.0, math.nan, 0.0], [math.inf, 0.0, 0.0], [-math.inf] * 3], ids=str)
def test_weights_that_are_no_answer_are_unparsed(weights: list[float]) -> None:
    scores = score(DirectEngine(ScriptedBackend(lambda *_: weights), WallClock()), SCENE, OPTIONS)
    assert (scores.outcome, scores.probabilities) == (Outcome.UNPARSED, ())


@given(st.lists(st.floats(-700, 700), min_size=2, max_size=40))
def test_probabilities_keep_the_order_of_the_weights(weights: list[float]) -> None:
    options = tuple(map(str, range(len(weights))))
    engine = DirectEngine(ScriptedBackend(lambda *_: weights), WallClock())
    probabilities = score(engine, SCENE, options).probabilities
    assert sum(probabilities) == pytest.approx(1)
    for one, other in zip(range(len(weights)), range(1, len(weights)), strict=False):
        assert weights[one] <= weights[other] or probabilities[one] >= probabilities[other]


def test_the_segments_sum_to_the_total_and_begin_when_it_was_asked() -> None:
    clock = ReplayClock(1_000)
    deadline = Deadline(clock)

    def slow(question: Question, call: RequestContext) -> Sequence[float]:
        clock.advance_to(clock.now_ns() + 70)
        return ascending(question, call)

    clock.advance_to(1_030)
    first, second = DirectEngine(ScriptedBackend(slow), clock).ask_many(SCENE, QUESTIONS[:2], deadline)
    assert {s.name: s.duration_ns for s in first.latency if s.duration_ns} == {"queue": 30, "decode": 70}
    assert {s.name: s.duration_ns for s in second.latency if s.duration_ns} == {"decode": 70}


def test_a_prefix_that_cannot_be_encoded_fails_every_question() -> None:
    class Broken(ScriptedBackend):
        def encoded(self, prefix: Prompt, call: RequestContext) -> NoReturn:
            raise EngineFailedError("out of memory: 2 GB are missing")

    answers = DirectEngine(Broken(ascending), WallClock()).ask_many(SCENE, QUESTIONS)
    assert [scores.outcome for scores in answers] == [Outcome.FAILED] * 3
    assert all(scores.reason == "out of memory: 2 GB are missing" for scores in answers)


def test_pictures_of_prefix_and_question_count_together() -> None:
    prefix = Prompt(version="v", parts=(picture(), picture()))
    question = Question(parts=(picture(),), options=OPTIONS)
    fits, too_many = DirectEngine(ScriptedBackend(ascending), WallClock()).ask_many(prefix, [QUESTIONS[0], question])
    assert (fits.outcome, too_many.outcome) == (Outcome.ANSWERED, Outcome.INVALID)
    assert "3 pictures" in too_many.reason


@pytest.mark.parametrize("text", ["", "wave", '{"act": "wave"}', '{"action": 3}', '{"action": "wave"'])
def test_text_that_is_not_of_the_schema_is_unparsed_and_kept(text: str) -> None:
    written = DirectEngine(ScriptedBackend(ascending, text), WallClock()).generate(SCENE, Deed)
    assert (written.outcome, written.value, written.text) == (Outcome.UNPARSED, None, text)
    assert "of the asked form" in written.reason


def test_a_deadline_in_the_middle_keeps_the_answers_before_it() -> None:
    clock = ReplayClock()

    def slow(question: Question, call: RequestContext) -> Sequence[float]:
        clock.advance_to(clock.now_ns() + 40)
        return ascending(question, call)

    answers = DirectEngine(ScriptedBackend(slow), clock).ask_many(SCENE, QUESTIONS, Deadline(clock, 60))
    assert [scores.outcome for scores in answers] == [Outcome.ANSWERED, Outcome.TIMED_OUT, Outcome.TIMED_OUT]


@pytest.mark.parametrize(
    "message",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB",
        "CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation' in https://docs.nvidia.com/cuda/",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    ],
)
def test_messages_of_libraries_are_recognized_as_lack_of_memory(message: str) -> None:
    assert is_out_of_memory(RuntimeError(message))
    assert not is_out_of_memory(RuntimeError("CUDA error: invalid device ordinal"))
