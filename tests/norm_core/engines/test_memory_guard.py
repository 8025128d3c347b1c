"""A model that does not fit is refused before it loads."""

import os
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from norm_core.engines.engine_factory import MemoryPlace, guard_load, open_engine, place_of
from norm_core.engines.errors import ModelMemoryError
from norm_core.models.manifest import Manifest
from norm_core.runtime.config import ConfigError, check_config
from norm_core.runtime.time import WallClock
from tests.norm_core.engines.test_engine_factory import ABC


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACTFUL_STATE", str(tmp_path / "state"))


def needing(load_mb: float, peak_mb: float, **settings: Any) -> Manifest:
    plain = {
        "name": "large",
        "task": "language",
        "engine": "llama.cpp",
        "source": {"path": "weights"},
        "quantization": "q4_0",
        "licence": "MIT",
        "memory": {"load_mb": load_mb, "peak_mb": peak_mb},
        "settings": settings,
    }
    return check_config(Manifest, plain, "large.yaml")


def free_mb() -> float:
    return place_of(needing(1, 1)).free_mb


def test_a_model_that_does_not_fit_is_refused_with_one_that_does(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "model.gguf").write_bytes(b"abc")
    large = Manifest.model_validate({**needing(80e6, 90e6).model_dump(mode="json"), "files": [ABC.model_dump()]})
    refusal = r"large needs 90000000 MB, and \d+ MB of memory are free; name \S+, which fits"
    with pytest.raises(ModelMemoryError, match=refusal):
        open_engine(large, WallClock(), beside=tmp_path)


def test_without_a_gpu_16_bit_weights_count_twice() -> None:
    plain = needing(1, 0.7 * free_mb()).model_dump(mode="json")
    wide = {"engine": "transformers", "quantization": "bf16", "settings": {"device": "cpu"}}
    plain["memory"]["estimated"] = True
    estimated = Manifest.model_validate(plain | wide)
    with pytest.raises(ModelMemoryError, match="estimated"), guard_load(estimated):
        pass


def test_wrong_settings_are_named_before_anything_is_measured() -> None:
    with pytest.raises(ConfigError, match="large: settings: gpu_layers"), guard_load(needing(1, 2, gpu_layers="all")):
        pass


@pytest.mark.parametrize("fault", ["no locks", "no folder"])
def test_a_disk_that_keeps_no_lock_stops_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")

    if fault == "no locks":
        monkeypatch.setattr("norm_core.engines.engine_factory.fcntl.flock", refuse)
    else:
        (tmp_path / "file").write_text("no folder")
        monkeypatch.setenv("TACTFUL_STATE", str(tmp_path / "file"))
    with guard_load(needing(1, 2)):
        pass
    with pytest.raises(ModelMemoryError), guard_load(needing(80e6, 90e6)):
        pass


def write_smi(body: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


GPU_MODEL = {"load_mb": 1, "peak_mb": 90e6, "gpu_layers": -1}


@pytest.mark.parametrize(("visible", "name"), [(None, "0"), ("1,0", "1"), ("GPU-abc", "GPU-abc")])
def test_the_gpu_is_the_one_that_this_process_may_use(
    visible: str | None, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_smi(f'[ "$1" = "--id={name}" ] && echo 1000', tmp_path, monkeypatch)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert place_of(needing(**GPU_MODEL)) == MemoryPlace(name=f"GPU {name}", free_mb=1000 * 1.048576)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert place_of(needing(**GPU_MODEL)).name == "memory"


@pytest.mark.parametrize(
    ("free_mb", "unused_mb", "fits"),
    [(None, 0, False), (9300, 0, False), (9300, 100, True)],
    ids=["filled by others", "no room for activations", "what torch holds in reserve"],
)
def test_torchs_gpu_is_asked_with_activations_and_reserves(
    free_mb: float | None, unused_mb: float, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mem_get_info(index: int) -> tuple[float, float]:
        if free_mb is None:
            raise RuntimeError("CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation'")
        return 1e6 * free_mb, 80e9

    cuda = SimpleNamespace(
        is_available=lambda: True,
        mem_get_info=mem_get_info,
        get_device_properties=lambda index: SimpleNamespace(is_integrated=False),
        memory_reserved=lambda index: 1e6 * (100 + unused_mb),
        memory_allocated=lambda index: 100e6,
    )
    monkeypatch.setattr("norm_core.engines.engine_factory.find_spec", lambda name: True)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    plain = needing(8000, 9000).model_dump(mode="json") | {"engine": "transformers"}
    plain["memory"]["estimated"] = True  # nine tenths, with a CUDA context of 650 MB that is there when it asks
    refusal = nullcontext() if fits else pytest.raises(ModelMemoryError, match=r"large needs 9350 MB \(estimated\)")
    with refusal, guard_load(Manifest.model_validate(plain)):
        pass


def test_a_driver_that_hangs_is_asked_for_a_bounded_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_smi("sleep 600 &\nwait", tmp_path, monkeypatch)
    monkeypatch.setattr("norm_core.engines.engine_factory._ASK_S", 0.1)
    assert place_of(needing(**GPU_MODEL)).name == "memory"
