"""A session runs where it can, says where that is, and says what is wrong with a model that cannot."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from faster_whisper.utils import get_assets_path

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.onnx.session import CPU, CUDA, list_providers, open_session
from norm_core.engines.providers import ProviderFault

SILERO = Path(get_assets_path(), "silero_vad_v6.onnx")
SHAPES = {"input": (1, 576), "h": (1, 1, 128), "c": (1, 1, 128)}
SILENCE = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}


@pytest.mark.filterwarnings("ignore:Specified provider")
def test_a_provider_that_fails_to_load_is_skipped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """This build has no CUDA: naming it as present is what a machine without its libraries looks like."""
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA, CPU])
    session = open_session(SILERO)
    assert session.provider == CPU
    assert [fault.provider for fault in session.faults] == [CUDA]
    assert all("libraries could not be loaded" in fault.reason for fault in session.faults)


@pytest.mark.skipif(CUDA in onnxruntime.get_available_providers(), reason="this ONNX Runtime is built with CUDA")
def test_a_missing_provider_is_reported_with_its_remedy() -> None:
    told: list[ProviderFault] = []
    session = open_session(SILERO, providers=list_providers(["cuda"]), on_fault=told.append)
    assert session.provider == CPU
    assert [fault.provider for fault in told] == [CUDA]
    assert all("setup gpu" in fault.reason for fault in told)
    assert open_session(SILERO).faults == ()  # nobody asked for what is not there


class BrokenGpu:
    """ONNX Runtime's session, with a GPU that raises from its n-th run on."""

    runs = 0
    made = onnxruntime.InferenceSession

    def __init__(self, model: str, options: Any, providers: list[Any], **rest: Any) -> None:
        self._session = BrokenGpu.made(model, options, providers=[CPU], **rest)
        self._left = self.runs if providers[0] == CUDA else None

    def get_providers(self) -> list[str]:
        return [CPU] if self._left is None else [CUDA, CPU]

    def run(self, *given: Any) -> Any:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise RuntimeError("CUDA failure 2: out of memory")
        return self._session.run(*given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


@pytest.fixture
def broken_gpu(monkeypatch: pytest.MonkeyPatch) -> type[BrokenGpu]:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA, CPU])
    monkeypatch.setattr(onnxruntime, "InferenceSession", BrokenGpu)
    monkeypatch.setattr(BrokenGpu, "runs", 0)
    return BrokenGpu


def test_a_provider_that_loads_but_cannot_run_is_passed_over(broken_gpu: type[BrokenGpu]) -> None:
    session = open_session(SILERO)
    assert session.provider == CPU
    assert [(fault.provider, fault.reason) for fault in session.faults] == [(CUDA, "CUDA failure 2: out of memory")]


def test_a_provider_that_fails_at_work_gives_way_for_good(broken_gpu: type[BrokenGpu]) -> None:
    told: list[ProviderFault] = []
    broken_gpu.runs = 2
    session = open_session(SILERO, on_fault=told.append)
    first = session.run(None, SILENCE)
    assert (session.provider, told) == (CUDA, [])
    for _ in range(2):
        again = session.run(None, SILENCE)
        assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))
    assert (session.provider, session.faults) == (CPU, tuple(told))
    assert [fault.reason for fault in told] == ["it failed at work: CUDA failure 2: out of memory"]


def test_wrong_inputs_cost_no_provider(broken_gpu: type[BrokenGpu]) -> None:
    broken_gpu.runs = 100
    session = open_session(SILERO)
    with pytest.raises(EngineFailedError, match=r"silero_vad_v6\.onnx: cannot be run on CUDA"):
        session.run(None, {"input": np.zeros((1, 2, 3), np.float32)})
    assert (session.provider, session.faults) == (CUDA, ())


@pytest.mark.parametrize(
    "damage",
    [lambda whole: whole[: len(whole) // 2], lambda whole: whole[:-1], lambda _: b"", lambda _: b"<html>404</html>"],
    ids=["half", "a byte short", "empty", "a web page"],
)
def test_a_damaged_model_is_named(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(damage(SILERO.read_bytes()))
    with pytest.raises(EngineFailedError, match=r"broken\.onnx: cannot be loaded"):
        open_session(broken)
