"""Pictures encoded apart from the text: as the joint pass, once a frame, within bounds, and as ONNX."""

from typing import Any
from unittest.mock import Mock

import pytest

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.prompt import Image, Prompt, Question, Text
from norm_core.engines.transformers.backend import TransformersBackend
from norm_core.runtime.time import WallClock
from tests.norm_core.engines.conftest import Checkpoints
from tests.norm_core.engines.contract import OPTIONS, QUESTIONS, SCENE, assert_answered, picture

pytestmark = pytest.mark.torch

FAMILIES = ["idefics3", "smolvlm", "llava", "qwen2_5_vl", "qwen3_vl", "internvl", "gemma3"]
SIZES = [(64, 48), (200, 100), (90, 30), (120, 60), (64, 64), (100, 200)]

SEEN_AT_ONCE = [*(picture(64 + 2 * shift, 48 + shift) for shift in range(4)), picture(200, 60)]


def window(*pictures: Image) -> Prompt:
    return Prompt(version="window-1", parts=(*pictures, *SCENE.parts, Text(text="What happens?")))


def counted(engine: DirectEngine) -> dict[str, int]:
    return {counter.name: counter.count for counter in engine.health.counters}


def found(hits: int, encoded: int, evicted: int = 0) -> dict[str, int]:
    return {"picture_cache_hits": hits, "picture_cache_misses": encoded, "picture_cache_evictions": evicted}


@pytest.mark.parametrize("family", FAMILIES)
def test_pictures_apart_answer_as_the_joint_pass(family: str, checkpoints: Checkpoints) -> None:
    apart = DirectEngine(TransformersBackend(checkpoints[family]), WallClock())
    joint = DirectEngine(TransformersBackend(checkpoints[family], picture_cache_mb=0), WallClock())
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
    engine = DirectEngine(TransformersBackend(checkpoints["qwen3_vl"]), WallClock())
    frames = [picture(*size) for size in SIZES]
    for start in range(4):
        answers = engine.ask_many(window(*frames[start : start + 3]), QUESTIONS)
        assert all(answer.probabilities for answer in answers)
    assert counted(engine) == found(hits=6, encoded=6)


def test_the_picture_cache_stays_within_its_memory(checkpoints: Checkpoints) -> None:
    from norm_core.engines.transformers.picture_cache import PictureCache
    from norm_core.engines.transformers.picture_encoder import PictureEncoder

    parts = TransformersBackend(checkpoints["internvl"]).loaded()
    encoder = PictureEncoder(parts.forward_pass.model)
    large = [picture(size, size) for size in range(60, 64)]
    size_bytes = encoder.encode(parts.tokenizer.tokenize_picture(large[0]).features, 1)[0].size_bytes
    # Two pictures fit.
    cache = PictureCache(2.5 * size_bytes / 1e6, parts.tokenizer, encoder)
    for images in (large, large[-1:], large[:1]):
        assert cache.get_spans(images, lambda: None).keys() == {image.sha256 for image in images}
    assert {counter.name: counter.count for counter in cache.counters} == found(hits=1, encoded=5, evicted=3)


@pytest.mark.parametrize("family", FAMILIES)
def test_pictures_of_one_shape_are_encoded_in_batches_of_fixed_size(family: str, checkpoints: Checkpoints) -> None:
    backend = TransformersBackend(checkpoints[family])
    alone = DirectEngine(backend, WallClock()).ask_many(window(*SEEN_AT_ONCE), QUESTIONS)
    backend = TransformersBackend(checkpoints[family])
    parts = backend.loaded()
    assert parts.picture_cache
    encoder = parts.picture_cache.encoder
    encoder.batch_size, encode = 3, Mock(wraps=encoder.encode)
    encoder.encode = encode  # type: ignore[method-assign]
    together = DirectEngine(backend, WallClock()).ask_many(window(*SEEN_AT_ONCE), QUESTIONS)
    # Three of one shape, then the fourth, and one of another shape where the family has more than one.
    assert [call.args[1] for call in encode.call_args_list] == [3] * (2 if family in {"llava", "gemma3"} else 3)
    for one, other in zip(together, alone, strict=True):
        assert_answered(one, 3)
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)
        assert one.usage == other.usage


@pytest.mark.parametrize("family", ["internvl", "idefics3", "smolvlm"])
@pytest.mark.parametrize(
    "said", [{"picture_tokens": 4}, {"context_tokens": 150, "max_images": 10}], ids=["manifest", "context"]
)
def test_pictures_are_not_tiled_beyond_the_limit_of_tokens(
    family: str, said: dict[str, Any], checkpoints: Checkpoints
) -> None:
    seen = Prompt(version="1", parts=(picture(448, 336),))
    usual, limited = (
        DirectEngine(TransformersBackend(checkpoints[family], **settings), WallClock()).ask_many(seen, QUESTIONS[:1])[0]
        for settings in ({}, said)
    )
    assert_answered(limited, 3)
    assert limited.usage.prompt_tokens <= usual.usage.prompt_tokens - 8  # two tiles less


def test_a_picture_of_more_tokens_than_the_manifest_says_is_refused_at_load(checkpoints: Checkpoints) -> None:
    with pytest.raises(EngineFailedError, match="px takes 14 tokens, and 11 have room"):
        TransformersBackend(checkpoints["qwen3_vl"], picture_tokens=3)
