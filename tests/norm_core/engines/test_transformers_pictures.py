"""The tokens that a picture may take."""

from typing import Any

import pytest

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.prompt import Prompt
from norm_core.engines.transformers.backend import TransformersBackend
from norm_core.runtime.time import WallClock
from tests.norm_core.engines.conftest import Checkpoints
from tests.norm_core.engines.contract import QUESTIONS, assert_answered, picture

pytestmark = pytest.mark.torch


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
