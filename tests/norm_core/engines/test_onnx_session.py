"""A session runs where it can, says where that is, and says what is wrong with a model that cannot."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from faster_whisper.utils import get_assets_path

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.onnx.session import CPU, CUDA, TENSORRT, open_session

SILERO = Path(get_assets_path(), "silero_vad_v6.onnx")


def test_the_provider_really_used_is_reported() -> None:
    session = open_session(SILERO, providers=(CPU,))
    assert (session.provider, session.faults) == (CPU, ())
    assert session.inputs["input"] == (None, 576)
    (probability, *_) = session.run(None, session.blank())
    assert 0 <= float(np.ravel(probability)[0]) <= 1


@pytest.mark.filterwarnings("ignore:Specified provider")
def test_a_provider_that_fails_to_load_is_skipped_and_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This build has no CUDA: naming it as present is what a machine without its libraries looks like."""
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [TENSORRT, CUDA, CPU])
    session = open_session(SILERO, cache_folder=tmp_path / "engines")
    assert session.provider == CPU
    assert [fault.provider for fault in session.faults] == [TENSORRT, CUDA]
    assert all(fault.reason for fault in session.faults)
    assert (tmp_path / "engines").is_dir()


def test_a_provider_that_loads_but_cannot_run_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    created = onnxruntime.InferenceSession

    class OutOfMemoryOnTheGpu:
        def __init__(self, model: str, options: Any, providers: list[Any], **rest: Any) -> None:
            self._session = created(model, options, providers=[CPU], **rest)
            self._on_gpu = providers[0][0] == CUDA

        def get_providers(self) -> list[str]:
            return [CUDA, CPU] if self._on_gpu else [CPU]

        def run(self, *given: Any) -> Any:
            if self._on_gpu:
                raise RuntimeError("CUDA failure 2: out of memory")
            return self._session.run(*given)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._session, name)

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA, CPU])
    monkeypatch.setattr(onnxruntime, "InferenceSession", OutOfMemoryOnTheGpu)
    session = open_session(SILERO)
    assert session.provider == CPU
    assert [(fault.provider, fault.reason) for fault in session.faults] == [(CUDA, "CUDA failure 2: out of memory")]


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


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineFailedError, match=r"none\.onnx: there is no such model file"):
        open_session(tmp_path / "none.onnx")


def test_no_provider_is_an_error_that_says_which_were_wanted() -> None:
    with pytest.raises(EngineFailedError, match=f"none of {CUDA} is in this ONNX Runtime"):
        open_session(SILERO, providers=(CUDA,))


def test_the_model_file_may_go_once_it_is_loaded(tmp_path: Path) -> None:
    copy = Path(shutil.copy(SILERO, tmp_path))
    session = open_session(copy)
    copy.unlink()
    assert len(session.run(None, session.blank())) == 3
