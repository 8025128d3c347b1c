"""Pictures through llama.cpp: a tiny vision model and its projector, made here, from a JPEG to scores."""

from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from norm_core.engines.engine import Engine
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.prompt import Image, Prompt, Text
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import WallClock
from tests.norm_core.engines.contract import OPTIONS, QUESTIONS, SCENE, EngineContract, assert_answered, picture, score

pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed: ./tactful setup llama")
pytest.importorskip("gguf", reason="gguf is not installed: python -m pip install --group llama-test")

from norm_core.engines.llama_cpp.backend import LlamaCppBackend
from tests.norm_core.engines.tiny_gguf import IMAGE_TOKENS, write_model, write_projector


@pytest.fixture(scope="module", params=["gemma3", "qwen2vl"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    write_model(folder / "tiny.gguf", request.param)
    write_projector(folder / "mmproj-tiny.gguf", request.param)
    return folder


@pytest.fixture(scope="module")
def backend(folder: Path) -> Iterator[LlamaCppBackend]:
    backend = LlamaCppBackend(
        folder / "tiny.gguf", projector_path=folder / "mmproj-tiny.gguf", context_tokens=2048, threads=1, max_images=4
    )
    yield backend
    backend.close()


@pytest.fixture
def engine(backend: LlamaCppBackend) -> Engine:
    return Engine(backend, WallClock())


class TestTinyGguf(EngineContract):
    @pytest.fixture
    def engine(self, backend: LlamaCppBackend) -> Engine:
        return Engine(backend, WallClock())


def seen(*images: Image) -> Prompt:
    return Prompt(version="1", parts=(*images, *SCENE.parts))


def shade(level: int) -> Image:
    return Image(jpeg=cv2.imencode(".jpg", np.full((48, 64, 3), level, np.uint8))[1].tobytes())


def test_the_answer_changes_with_the_picture(engine: Engine) -> None:
    answers = [score(engine, prompt, OPTIONS) for prompt in (SCENE, seen(shade(0)), seen(shade(255)), seen(picture()))]
    for answer in answers:
        assert_answered(answer, 3)
    assert len({answer.probabilities for answer in answers}) == 4
    assert [answer.usage.images for answer in answers] == [0, 1, 1, 1]
    assert len({answer.prompt_digest for answer in answers}) == 4
    again = score(engine, seen(shade(0)), OPTIONS)
    assert again.probabilities == answers[1].probabilities


def test_questions_share_the_pictures_of_their_prefix(engine: Engine) -> None:
    prefix = seen(picture(), shade(128))
    shared = engine.ask_many(prefix, QUESTIONS)
    for nth, question in enumerate(QUESTIONS):
        anew = Prompt(version=f"anew-{nth}", parts=prefix.parts)
        (alone,) = engine.ask_many(anew, [question])
        assert alone.usage.cached_tokens == 0
        assert alone.probabilities == shared[nth].probabilities
    assert shared[1].usage.cached_tokens > 2 * IMAGE_TOKENS


@pytest.mark.parametrize("jpeg", [b"no picture", b""], ids=["text", "empty"])
def test_what_is_no_picture_is_invalid_and_spoils_nothing(engine: Engine, jpeg: bytes) -> None:
    expected = score(engine, seen(picture()), OPTIONS).probabilities
    refused = score(engine, seen(Image(jpeg=jpeg)), OPTIONS)
    assert refused.outcome is Outcome.INVALID
    assert score(engine, seen(picture()), OPTIONS).probabilities == expected


def test_pictures_beyond_the_context_are_invalid(folder: Path) -> None:
    projector = folder / "mmproj-tiny.gguf"
    engine = Engine(
        LlamaCppBackend(folder / "tiny.gguf", projector_path=projector, context_tokens=256, threads=1), WallClock()
    )
    prompt = Prompt(version="1", parts=(Text(text="wait " * 48), picture()))
    assert score(engine, prompt, OPTIONS).outcome is Outcome.INVALID
    engine.close()


def test_a_projector_of_another_model_is_refused(folder: Path, tmp_path: Path) -> None:
    other = write_projector(tmp_path / "mmproj-other.gguf", width=32)
    with pytest.raises(
        EngineFailedError, match=r"mmproj-other\.gguf: cannot be loaded.*no projector of this model.*own repository"
    ):
        LlamaCppBackend(folder / "tiny.gguf", projector_path=other, threads=1)


def test_a_model_without_a_chat_template_answers_and_is_told(tmp_path: Path) -> None:
    plain = write_model(tmp_path / "plain.gguf", template="")
    engine = Engine(LlamaCppBackend(plain, context_tokens=1024, threads=1), WallClock())
    assert_answered(score(engine, SCENE, OPTIONS), 3)
    assert engine.model_info.device == "CPU"
    (issue,) = engine.health.issues
    assert issue.startswith("plain: has no chat template")
    engine.close()
