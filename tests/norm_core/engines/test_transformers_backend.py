import pytest

torch = pytest.importorskip("torch", reason="needs torch: ./tactful test runs it in an environment of its own")

from collections.abc import Callable, Iterator  # noqa: E402
from pathlib import Path  # noqa: E402

from contract import OPTIONS, QUESTIONS, SCENE, EngineContract, assert_answered, picture  # noqa: E402
from tiny_checkpoints import built  # noqa: E402

from norm_core.engines.engine import Engine  # noqa: E402
from norm_core.engines.transformers_backend import TransformersBackend  # noqa: E402
from norm_core.time import WallClock  # noqa: E402

ALL = ["idefics3", "qwen3_vl", "llama", "qwen2_5_vl", "internvl", "smolvlm", "gemma3"]

@pytest.fixture(scope="module", params=ALL)
def engine(request, tmp_path_factory):
    folder = built(request.param, tmp_path_factory.mktemp(request.param))
    engine = Engine(TransformersBackend(folder), WallClock())
    yield engine
    engine.close()

class TestTransformers(EngineContract):
    def test_image(self, engine):
        if engine.card.max_images == 0: return
        from norm_core.engines.prompt import Prompt
        s = engine.score(Prompt(version="1", parts=(picture(), *SCENE.parts, picture(200,100))), OPTIONS)
        t = engine.score(SCENE, OPTIONS)
        assert_answered(s, 3)
        print(s.probabilities, t.probabilities, s.usage)
        assert s.probabilities != pytest.approx(t.probabilities, abs=1e-4)
