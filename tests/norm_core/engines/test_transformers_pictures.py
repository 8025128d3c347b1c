"""Pictures encoded apart from the text: as the joint pass, once a frame, within bounds, and as ONNX."""

import pytest

from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Image, Prompt, Question, Text
from norm_core.engines.transformers.backend import TransformersBackend
from norm_core.runtime.time import WallClock
from tests.norm_core.engines.conftest import Checkpoints
from tests.norm_core.engines.contract import OPTIONS, QUESTIONS, SCENE, assert_answered, picture

pytestmark = pytest.mark.torch

FAMILIES = ["idefics3", "smolvlm", "llava", "qwen2_5_vl", "qwen3_vl", "internvl", "gemma3"]
SIZES = [(64, 48), (200, 100), (90, 30), (120, 60), (64, 64), (100, 200)]


def window(*pictures: Image) -> Prompt:
    return Prompt(version="window-1", parts=(*pictures, *SCENE.parts, Text(text="What happens?")))


def counted(engine: Engine) -> dict[str, int]:
    return {counter.name: counter.count for counter in engine.health.counters}


def found(hits: int, encoded: int, evicted: int = 0) -> dict[str, int]:
    return {"picture_cache_hits": hits, "picture_cache_misses": encoded, "picture_cache_evictions": evicted}


@pytest.mark.parametrize("family", FAMILIES)
def test_pictures_apart_answer_as_the_joint_pass(family: str, checkpoints: Checkpoints) -> None:
    apart = Engine(TransformersBackend(checkpoints[family]), WallClock())
    joint = Engine(TransformersBackend(checkpoints[family], picture_cache_mb=0), WallClock())
    seen = window(*(picture(*size) for size in SIZES[:3]))
    question = Question(parts=(picture(120, 60), Text(text="And now?")), options=OPTIONS)
    for _ in range(2):  # encoded, then found
        for one, other in zip(
            apart.ask_many(seen, [question, *QUESTIONS]), joint.ask_many(seen, [question, *QUESTIONS]), strict=True
        ):
            assert_answered(one, 3)
            assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)
            assert one.usage == other.usage
    assert counted(apart) == found(hits=4, encoded=4)
    assert not counted(joint)


def test_a_frame_is_encoded_once_for_windows_that_slide(checkpoints: Checkpoints) -> None:
    engine = Engine(TransformersBackend(checkpoints["qwen3_vl"]), WallClock())
    frames = [picture(*size) for size in SIZES]
    for start in range(4):
        answers = engine.ask_many(window(*frames[start : start + 3]), QUESTIONS)
        assert all(answer.probabilities for answer in answers)
    assert counted(engine) == found(hits=6, encoded=6)


def test_kept_pictures_stay_within_their_memory(checkpoints: Checkpoints) -> None:
    from norm_core.engines.transformers.picture_cache import PictureCache
    from norm_core.engines.transformers.picture_encoder import PictureEncoder

    parts = TransformersBackend(checkpoints["internvl"]).loaded()
    encoder = PictureEncoder(parts.runner.model)
    large = [picture(size, size) for size in range(60, 64)]
    size_bytes = PictureCache(1, parts.reader, encoder).span(large[0]).embeddings[0].size_bytes
    # Two pictures fit.
    cache = PictureCache(2.5 * size_bytes / 1e6, parts.reader, encoder)
    for image in large:
        cache.span(image)
    cache.span(large[-1])
    cache.span(large[0])
    assert {counter.name: counter.count for counter in cache.counters} == found(hits=1, encoded=5, evicted=3)
