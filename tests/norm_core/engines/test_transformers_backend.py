"""The transformers engine over tiny checkpoints of the real families; those marked slow run on demand."""

import weakref
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import cv2
import numpy as np
import pytest
from pydantic import BaseModel

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.errors import PastDeadlineError
from norm_core.engines.options import format_options
from norm_core.engines.prompt import Image, Prompt, Question, Quoted, Text
from norm_core.engines.reply import Generation
from norm_core.engines.request_context import Deadline, RequestContext
from norm_core.engines.transformers.backend import TransformersBackend
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import NS_PER_MS, WallClock
from tests.norm_core.engines.conftest import Checkpoints
from tests.norm_core.engines.contract import (
    OPTIONS,
    QUESTIONS,
    SCENE,
    EngineContract,
    Ticking,
    assert_answered,
    picture,
    score,
)

pytestmark = pytest.mark.torch

SEEING = ["idefics3", "qwen3_vl"]
ON_DEMAND = ["qwen2_5_vl", "internvl", "smolvlm", "gemma3", "llava"]
SCENE_SEEN = Prompt(
    version="seen-1",
    parts=(picture(), *SCENE.parts, picture(200, 100), Text(text="And a little later:"), picture(90, 30)),
)
QUESTION_SEEN = Question(parts=(picture(120, 60), Text(text="What should the robot do now?")), options=OPTIONS)


@pytest.fixture(scope="module")
def qwen(checkpoints: Checkpoints) -> Iterator[TransformersBackend]:
    backend = TransformersBackend(checkpoints["qwen3_vl"])
    yield backend
    backend.close()


class TestTransformers(EngineContract):
    @pytest.fixture(
        scope="class",
        params=[*SEEING, "llama", *(pytest.param(name, marks=pytest.mark.thorough) for name in ON_DEMAND)],
    )
    def engine(self, request: pytest.FixtureRequest, checkpoints: Checkpoints) -> Iterator[DirectEngine]:
        engine = DirectEngine(TransformersBackend(checkpoints[request.param], max_images=4), WallClock())
        yield engine
        engine.close()


@pytest.mark.parametrize("chunk_tokens", [40, 5000])
@pytest.mark.parametrize("family", [*SEEING, *ON_DEMAND, "llama"])
def test_reading_in_steps_equals_the_usual_single_pass(
    family: str, chunk_tokens: int, checkpoints: Checkpoints
) -> None:
    backend = TransformersBackend(checkpoints[family])
    backend.loaded().forward_pass.chunk_tokens = chunk_tokens
    prefix, question = (SCENE, QUESTIONS[0]) if family == "llama" else (SCENE_SEEN, QUESTION_SEEN)
    shared = DirectEngine(backend, WallClock()).ask_many(prefix, [question, question])[1]
    assert_answered(shared, 3)
    expected, tokens = single_pass(backend, prefix, question, family)
    assert shared.probabilities == pytest.approx(expected, abs=1e-5)
    assert shared.usage.prompt_tokens + shared.usage.cached_tokens == tokens


def single_pass(
    backend: TransformersBackend, prefix: Prompt, question: Question, family: str
) -> tuple[list[float], int]:
    """What the family's own processor and model say, without a cache or steps, and the number of tokens."""
    import torch

    reader, model = backend.loaded().tokenizer, backend.loaded().forward_pass.model
    whole = question.after(prefix)
    head = reader.head_of_picture if whole.images else reader.head
    text = head + whole.as_text(reader.mark) + "\n" + format_options(question.options) + reader.tail
    if whole.images:
        pixels = [np.asarray(cv2.imdecode(np.frombuffer(one.jpeg, np.uint8), 1))[..., ::-1] for one in whole.images]
        nested: list[Any] = [pixels] if family in {"idefics3", "smolvlm", "gemma3"} else pixels
        assert reader.processor is not None
        inputs = reader.processor(text=[text], images=nested, return_tensors="pt")
    else:
        inputs = reader.tokenizer([text], return_tensors="pt", add_special_tokens=False)
    inputs.pop("rows", None), inputs.pop("cols", None)
    with torch.inference_mode():
        logits = model(**inputs).logits[0, -1]
    weights = torch.tensor(backend.loaded().decoder.weigh_letters(logits, len(question.options)))
    return weights.softmax(-1).tolist(), inputs["input_ids"].shape[1]


@pytest.mark.parametrize("family", [*SEEING, *ON_DEMAND, "llama"])
def test_all_questions_take_one_pass_and_do_not_see_one_another(family: str, checkpoints: Checkpoints) -> None:
    backend = TransformersBackend(checkpoints[family])
    engine, runner = DirectEngine(backend, WallClock()), backend.loaded().forward_pass
    runner.chunk_tokens = 5000
    prefix, seen = (SCENE, ()) if family == "llama" else (SCENE_SEEN, (QUESTION_SEEN,))
    questions = [*QUESTIONS[1:], *seen, Question(parts=(), options=()), *QUESTIONS[:1]]
    passes = noted_passes(runner.model)
    together = engine.ask_many(prefix, questions)
    assert len(passes) == 2  # the prefix, and one row of all questions
    assert sum(passes) == sum(answer.usage.prompt_tokens for answer in together)
    for answer, question in zip(together, questions, strict=True):
        (alone,) = engine.ask_many(prefix, [question])
        assert answer.outcome == alone.outcome
        assert np.log(answer.probabilities) == pytest.approx(np.log(alone.probabilities), abs=1e-3)
        assert answer.best == alone.best
    assert [answer.probabilities for answer in engine.ask_many(prefix, questions)] == [
        answer.probabilities for answer in together
    ]


def noted_passes(model: Any) -> list[int]:
    """The numbers of tokens of all passes from now on."""
    passes: list[int] = []
    model.register_forward_pre_hook(lambda _, __, inputs: passes.append(inputs["input_ids"].shape[1]), with_kwargs=True)
    return passes


class Interrupting(RequestContext):
    """Raises at its n-th check."""

    def __init__(self, checks: int) -> None:
        super().__init__(Deadline(WallClock()))
        self.left = checks

    def check(self) -> None:
        self.left -= 1
        if self.left <= 0:
            raise PastDeadlineError("no time is left")


def test_a_question_interrupted_midway_leaves_the_prefix_as_it_was(checkpoints: Checkpoints) -> None:
    backend = TransformersBackend(checkpoints["qwen3_vl"])
    backend.loaded().forward_pass.chunk_tokens = 40
    call = RequestContext(Deadline(WallClock()))
    with backend.encoded(SCENE_SEEN, call) as prefix:
        before = backend.score(prefix, QUESTION_SEEN, call)
        with pytest.raises(PastDeadlineError):
            backend.score(prefix, QUESTION_SEEN, Interrupting(checks=3))
        assert backend.score(prefix, QUESTION_SEEN, call) == before


def long_scene(tokens: int) -> Prompt:
    return Prompt(version="long-1", parts=(Text(text="a " * (tokens // 2)),))


def test_a_deadline_ends_writing(qwen: TransformersBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qwen.loaded().decoder, "is_end", lambda token: False)
    clock = Ticking()
    written: Generation[BaseModel] = DirectEngine(qwen, clock).generate(
        SCENE, max_tokens=1500, deadline=Deadline(clock, 60 * NS_PER_MS)
    )
    assert written.outcome is Outcome.TIMED_OUT
    assert 0 < written.usage.completion_tokens < 100


class Starving:
    """A hook on a model's layer: no memory is left at its n-th pass after `arm`, or at each of too many tokens."""

    def __init__(self, max_tokens: int | None = None) -> None:
        self._passes_left = 0
        self._max_tokens = max_tokens
        self.held: weakref.ref[Any] | None = None

    def arm(self, passes: int) -> None:
        self._passes_left = passes

    def __call__(self, module: Any, inputs: Any, output: Any) -> None:
        import torch

        hidden = output[0] if isinstance(output, tuple) else output
        self._passes_left -= 1
        if self._passes_left == 0 or (self._max_tokens is not None and hidden.shape[1] > self._max_tokens):
            self.held = weakref.ref(hidden)
            torch.empty(1 << 60, dtype=torch.uint8)  # more than any machine has: the allocator itself says so


def test_out_of_memory_fails_one_question_and_frees_the_rest(checkpoints: Checkpoints) -> None:
    backend = TransformersBackend(checkpoints["idefics3"])
    starving = Starving()
    backend.loaded().forward_pass.model.model.text_model.layers[0].register_forward_hook(starving)
    prefix = Prompt(version="1", parts=(Text(text="Look:"), picture()))
    engine = DirectEngine(backend, WallClock())
    usual = engine.ask_many(prefix, QUESTIONS)
    starving.arm(passes=2)  # the prefix, the first two questions, which are then read one by one
    assert [answer.outcome for answer in engine.ask_many(prefix, QUESTIONS)] == [Outcome.ANSWERED] * 3
    starving.arm(passes=3)  # the prefix, the first two questions, the third
    answers = engine.ask_many(prefix, QUESTIONS)
    assert [answer.outcome for answer in answers] == [Outcome.ANSWERED, Outcome.ANSWERED, Outcome.FAILED]
    assert answers[1].probabilities == usual[1].probabilities
    assert starving.held
    assert starving.held() is None
    assert "model_out_of_memory" in {counter.name for counter in engine.health.counters}


def test_short_memory_makes_steps_smaller_and_the_answer_says_so(checkpoints: Checkpoints) -> None:
    backend = TransformersBackend(checkpoints["llama"])
    engine = DirectEngine(backend, WallClock())
    usual, *_ = engine.ask_many(long_scene(1000), QUESTIONS[:1])
    starving = backend.loaded().forward_pass.model.model.layers[1].register_forward_hook(Starving(max_tokens=100))
    chunked = [engine.ask_many(long_scene(1000), QUESTIONS[:1])[0] for _ in range(2)]
    starving.remove()
    assert [usual.usage.chunks, *(answer.usage.chunks for answer in chunked)] == [0, 16, 16]
    for answer in chunked:
        assert answer.probabilities == pytest.approx(usual.probabilities, abs=1e-5)
    assert engine.ask_many(long_scene(1000), QUESTIONS[:1])[0].probabilities == usual.probabilities
    assert [(counter.name, counter.count) for counter in engine.health.counters] == [("reads_in_chunks", 2)]


@pytest.mark.parametrize("family", [*SEEING, *ON_DEMAND, "llama"])
def test_words_never_become_control_tokens(family: str, checkpoints: Checkpoints) -> None:
    from tests.norm_core.engines.tiny_checkpoints import FAMILIES

    backend = TransformersBackend(checkpoints[family])
    reader = backend.loaded().tokenizer
    control = {number for number, token in reader.tokenizer.added_tokens_decoder.items() if token.special}

    def controls(said: str) -> int:
        parts = (Text(text=said), Quoted(text=said, label=said), Text(text=format_options((said, "wave"))))
        pieces = [*reader.tokenize_opening(parts), *reader.tokenize_closing(parts)]
        return sum(int(number) in control for piece in pieces for number in piece.ids[0])

    usual = controls("Good morning!")
    for token in FAMILIES[family].special:
        assert reader.tokenizer.encode(token, add_special_tokens=False)[0] in control
        doubled = f"{token[:3]}{token}{token[3:]}"
        for said in (token, f"<{token}", f"{token}{token}", f"a{token}b", token[0] + token, doubled):
            assert controls(said) == usual, said


def test_writing_stops_where_the_context_ends(checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = TransformersBackend(checkpoints["llama"], context_tokens=120)
    monkeypatch.setattr(backend.loaded().decoder, "is_end", lambda token: False)
    written: Generation[BaseModel] = DirectEngine(backend, WallClock()).generate(SCENE, max_tokens=500)
    assert written.outcome is Outcome.ANSWERED
    assert written.usage.prompt_tokens + written.usage.completion_tokens == 121


@pytest.mark.parametrize("captures", [False, True])
@pytest.mark.parametrize("family", [*SEEING, *ON_DEMAND, "llama"])
def test_tokens_over_a_cache_of_fixed_size_are_the_same(
    family: str, captures: bool, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from norm_core.engines.transformers.decoding import StaticDecoding

    forward = StaticDecoding.forward
    passes: list[tuple[StaticDecoding, torch.Tensor]] = []

    class Graph:
        """A pass that is run again into the same tensor, as a GPU's graph does it."""

        replays = 0

        def replay(self) -> None:
            Graph.replays += 1
            captured, logits = passes[1]
            logits.copy_(forward(captured))

    def noted(decoding: StaticDecoding) -> torch.Tensor:
        passes.append((decoding, forward(decoding)))
        return passes[-1][1]

    monkeypatch.setattr(StaticDecoding, "forward", noted)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", lambda graph, capture_error_mode: nullcontext())
    backend = TransformersBackend(checkpoints[family])
    runner = backend.loaded().forward_pass
    runner.captures_graphs = captures
    monkeypatch.setattr(backend.loaded().decoder, "is_end", lambda token: False)
    prompts = [SCENE, SCENE] if family == "llama" else [SCENE_SEEN, SCENE]  # a shorter one into the same cache
    engine = DirectEngine(backend, WallClock())
    written: list[list[str]] = []
    for runner.is_static in (False, True):
        written.append([engine.generate(prompt, max_tokens=12, seed=seed).text for seed, prompt in enumerate(prompts)])
    assert written[0] == written[1]
    assert (len(passes), Graph.replays) == ((2, 22) if captures else (22, 0))


def test_a_warm_up_asks_and_writes_once_with_all_pictures(checkpoints: Checkpoints) -> None:
    backend = TransformersBackend(checkpoints["qwen3_vl"], max_images=3)
    runner = backend.loaded().forward_pass
    runner.chunk_tokens = 5000
    passes = noted_passes(runner.model)
    backend.warm_up()
    prefix, questions, prompt, *steps = passes
    assert questions > 8 * 30
    assert prompt > prefix
    assert steps == [1, 1]
    assert {counter.count for counter in backend.health.counters} == {0}


@pytest.mark.parametrize(
    "jpeg", [b"", b"no picture", picture().jpeg[:40], b"\xff\xd8\xff"], ids=["empty", "text", "cut", "start"]
)
def test_bytes_that_are_not_a_jpeg_are_invalid(jpeg: bytes, qwen: TransformersBackend) -> None:
    engine = DirectEngine(qwen, WallClock())
    scores = score(engine, Prompt(version="1", parts=(Image(jpeg=jpeg),)), OPTIONS)
    assert scores.outcome is Outcome.INVALID
    assert "JPEG" in scores.reason
