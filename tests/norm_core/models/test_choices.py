"""What fits beside what is free, and why the rest does not."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from norm_core.models.catalogue import Catalogue
from norm_core.models.choices import ModelChoice, plan_model, rank_models
from norm_core.models.machine import Gpu, Machine

SMALL_PC = Machine(ram_free_mb=6000.0, disk_free_mb=50_000.0)
LAPTOP = replace(SMALL_PC, gpus=(Gpu(name="RTX 4060", device="0", memory_mb=8586.0, free_mb=8179.0),))
SERVER = replace(SMALL_PC, gpus=(Gpu(name="H100", device="0", memory_mb=85_000.0, free_mb=84_000.0),))


def ranked(machine: Machine) -> dict[str, ModelChoice]:
    catalogue = Catalogue()
    choices = rank_models(machine, [catalogue.read_manifest(name) for name in catalogue.list_names()])
    return {choice.model: choice for choice in choices}


@pytest.mark.parametrize(("machine", "best"), [(LAPTOP, "internvl3.5-4b-nf4"), (SERVER, "qwen3-vl-8b")])
def test_the_largest_that_fits_on_the_gpu_comes_first(machine: Machine, best: str) -> None:
    first = next(iter(ranked(machine).values()))
    assert (first.model, first.device, first.runs) == (best, "GPU", True)


def test_a_model_that_does_not_fit_has_an_obstacle() -> None:
    on_laptop = ranked(LAPTOP)
    assert on_laptop["qwen3-vl-8b"].obstacle == ("needs about 18742 MB at its peak, and 7361 MB of GPU are usable")
    full = replace(LAPTOP, disk_free_mb=3500.0)
    assert "and 3500 MB are free: free some, or set TACTFUL_WEIGHTS" in ranked(full)["qwen3-vl-4b-nf4"].obstacle
    assert ranked(SMALL_PC)["qwen3-vl-4b"].obstacle == "it needs an NVIDIA GPU, and there is none"
    unknown = replace(LAPTOP, gpus=(Gpu(name="A", device="0", memory_mb=8000.0),))
    assert ranked(unknown)["qwen3-vl-2b-nf4"].obstacle == "the GPU memory of this machine is not known"


def test_on_a_cpu_16_bit_weights_are_counted_as_32() -> None:
    model = Catalogue().read_manifest("smolvlm2-256m")
    assert model.memory
    choice = plan_model(replace(SMALL_PC, extras=("transformers",)), model)
    assert (choice.runs, choice.peak_mb) == (True, 2 * model.memory.peak_mb)


@pytest.mark.parametrize("quantization", ["awq", "gptq"])
def test_awq_and_gptq_models_need_a_server(quantization: str) -> None:
    model = Catalogue().read_manifest("qwen3-vl-2b").model_copy(update={"quantization": quantization})
    assert plan_model(LAPTOP, model).obstacle.endswith("can be read only by a server: serve them with vLLM")


def test_a_server_of_this_machine_is_started_bound_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACTFUL_WEIGHTS", str(tmp_path / "my models"))
    monkeypatch.setenv("TACTFUL_SERVE_VENV", str(tmp_path / "serve"))
    monkeypatch.setenv("PATH", str(tmp_path))
    choices = ranked(SERVER)
    vllm = choices["qwen3-vl-4b-vllm"]
    assert (vllm.device, vllm.extra, vllm.runs) == ("server", "serve", True)
    assert vllm.commands == (
        f"{tmp_path}/serve/bin/vllm serve Qwen/Qwen3-VL-4B-Instruct --host 127.0.0.1 --port 8000 --max-model-len 8192",
    )
    assert choices["qwen3-vl-4b-ollama"].commands == ("ollama serve", "ollama pull qwen3-vl:4b-instruct")
    packaged = choices["smollm2-135m-q4"]
    assert packaged.obstacle.startswith("llama-server is not installed: see https://")
    weights = tmp_path / "my models/smollm2-135m-q4/SmolLM2-135M-Instruct.Q4_1.gguf"
    assert shlex.split(packaged.commands[0])[1:5] == ["-m", str(weights), "--alias", "smollm2-135m-q4"]
    assert "vLLM needs an NVIDIA GPU" in ranked(SMALL_PC)["qwen3-vl-4b-vllm"].obstacle


def test_weights_that_are_here_need_no_disk() -> None:
    model = Catalogue().read_manifest("qwen3-vl-2b-nf4")
    full = replace(LAPTOP, disk_free_mb=100.0)
    assert not plan_model(full, model).runs
    assert (plan_model(full, model, is_pulled=True).runs, plan_model(full, model, is_pulled=True).download_mb) == (
        True,
        0.0,
    )
