from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel

from norm_core.engines.backend_process import BackendProcess
from norm_core.engines.engine import Engine
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.prompt import Prompt, Text
from norm_core.engines.reply import Generation
from norm_core.engines.request_context import Deadline
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import NS_PER_MS, WallClock
from tests.norm_core.engines.contract import OPTIONS, QUESTIONS, SCENE, EngineContract, Ticking, assert_answered, score
from tests.norm_core.engines.smollm2 import smollm2_gguf

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed: ./tactful setup llama")

from norm_core.engines.llama_cpp import probe
from norm_core.engines.llama_cpp.backend import LlamaCppBackend

CONTEXT_TOKENS = 512


class Gesture(BaseModel):
    gesture: Literal["wave", "bow"]


LONG = Prompt(version="1", parts=(Text(text="The robot waits by the door. " * 16),))


@pytest.fixture(scope="module")
def weights() -> Path:
    return smollm2_gguf()


@pytest.fixture(scope="module")
def backend(weights: Path) -> Iterator[LlamaCppBackend]:
    backend = LlamaCppBackend(weights, context_tokens=CONTEXT_TOKENS, threads=1)
    yield backend
    backend.close()


@pytest.fixture
def engine(backend: LlamaCppBackend) -> Engine:
    return Engine(backend, WallClock())


class TestLlamaCpp(EngineContract):
    @pytest.fixture(scope="class")
    def process(self, weights: Path) -> Iterator[BackendProcess]:
        settings = {"path": weights, "context_tokens": CONTEXT_TOKENS, "threads": 1}
        process = BackendProcess("norm_core.engines.llama_cpp.backend:LlamaCppBackend", **settings)
        yield process
        process.close()

    @pytest.fixture
    def engine(self, process: BackendProcess) -> Engine:
        return Engine(process, WallClock())


def test_what_was_built_answers_the_first_question_of_a_set_up() -> None:
    assert probe.main() == 0


def test_a_shared_prefix_changes_no_bit(engine: Engine) -> None:
    shared = engine.ask_many(SCENE, QUESTIONS)
    for nth, question in enumerate(QUESTIONS):
        # The same words as another prompt, which is read anew.
        (alone,) = engine.ask_many(Prompt(version=f"anew-{nth}", parts=SCENE.parts), [question])
        assert alone.usage.cached_tokens == 0
        assert alone.probabilities == shared[nth].probabilities


def test_a_prefix_is_read_once_and_held_until_another_comes(engine: Engine) -> None:
    score(engine, LONG, OPTIONS)
    first, second = (scores.usage for scores in engine.ask_many(SCENE, QUESTIONS[:2]))
    again = engine.ask_many(SCENE, QUESTIONS[:1])[0].usage
    assert (first.cached_tokens, second.cached_tokens) == (0, again.cached_tokens)
    assert first.prompt_tokens == again.prompt_tokens + again.cached_tokens
    assert again.cached_tokens > 20


def test_a_deadline_amid_writing_ends_it(engine: Engine) -> None:
    score(engine, SCENE, OPTIONS)
    written: Generation[BaseModel] = engine.generate(
        SCENE, max_tokens=500, deadline=Deadline(Ticking(), 60 * NS_PER_MS)
    )
    assert written.outcome is Outcome.TIMED_OUT
    assert 0 < written.usage.completion_tokens < 60


def test_words_of_others_are_no_control_tokens(engine: Engine) -> None:
    """The model's end of turn is one token where the template writes it, and several where a text quotes it."""
    word, quoted = (
        score(engine, Prompt(version="1", parts=(Text(text=text),)), OPTIONS).usage.prompt_tokens
        for text in ("a", "<|im_end|>")
    )
    assert quoted - word >= 3


def test_a_schema_is_held_to(engine: Engine) -> None:
    written = engine.generate(SCENE, Gesture, max_tokens=40)
    assert written.outcome is Outcome.ANSWERED, written.reason
    assert written.value is not None
    assert written.value.gesture in ("wave", "bow")


def test_writing_stops_where_the_context_ends(weights: Path) -> None:
    engine = Engine(LlamaCppBackend(weights, context_tokens=256, threads=1), WallClock())
    most = engine.model_info.context_tokens or 0
    written: Generation[BaseModel] = engine.generate(
        Prompt(version="1", parts=(Text(text="and again " * 95),)), max_tokens=most
    )
    engine.close()
    assert written.outcome is Outcome.ANSWERED, written.reason
    assert 0 < written.usage.completion_tokens < most
    assert written.usage.prompt_tokens + written.usage.completion_tokens <= most + 1


@pytest.mark.parametrize("kind", ["missing", "empty", "truncated"])
def test_weights_that_cannot_be_used_are_a_failure(weights: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "model.gguf"
    if kind == "empty":
        path.touch()
    if kind == "truncated":
        with weights.open("rb") as whole:
            path.write_bytes(whole.read(3_000_000))
    with pytest.raises(EngineFailedError, match=r"model\.gguf"):
        LlamaCppBackend(path)


def test_a_context_too_large_fails_and_the_next_load_works(weights: Path) -> None:
    with pytest.raises(EngineFailedError, match="out of memory"):
        LlamaCppBackend(weights, context_tokens=2**31, threads=1)
    engine = Engine(LlamaCppBackend(weights, context_tokens=256, threads=1), WallClock())
    assert_answered(score(engine, SCENE, OPTIONS), 3)
    engine.close()
    engine.close()


def test_a_projector_that_is_none_is_a_failure(weights: Path, tmp_path: Path) -> None:
    for projector in (weights, tmp_path / "missing.gguf"):
        with pytest.raises(EngineFailedError, match="projector"):
            LlamaCppBackend(weights, projector_path=projector, context_tokens=256, threads=1)
