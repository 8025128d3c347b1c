"""A vision-language checkpoint through `tactful models setup`, as its user calls it."""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from norm_core.runtime.extras import find_installed_extras
from tests.command_line import tactful

pytestmark = pytest.mark.torch


def call(*arguments: str) -> dict[str, Any]:
    done = tactful("models", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_checkpoint_is_asked_about_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.norm_core.engines.tiny_checkpoints import built

    monkeypatch.setenv("TACTFUL_MODELS", str(tmp_path / "manifests"))
    monkeypatch.setenv("TACTFUL_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    name = call("add", str(built("qwen3_vl", tmp_path / "qwen3_vl")))["name"]
    measured = call("setup", name)
    assert measured["with_picture"]
    assert measured["device"] == "CPU"
    assert len(measured["answers"]) == 3
    assert measured["peak_mb"] >= measured["load_mb"] > 0
    memory = call("list", name)["manifest"]["memory"]
    assert "estimated" not in memory
    assert memory["how"].startswith(f"measured on {measured['date']} on the CPU")


def test_torch_without_cuda_is_not_taken_for_that_of_a_gpu() -> None:
    pytest.importorskip("torch")
    here, on_a_gpu = find_installed_extras(), find_installed_extras(for_gpu=True)
    assert "transformers" in here
    assert ("transformers" in on_a_gpu) == (not version("torch").endswith("+cpu"))
