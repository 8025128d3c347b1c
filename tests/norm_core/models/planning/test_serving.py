"""The plan of servers on described machines."""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from norm_core.models.catalogue import Catalogue
from norm_core.models.planning.choices import ModelChoice, choose, plan
from norm_core.models.planning.machine import Machine
from tests.norm_core.models.planning.test_choices import machine


def planned(name: str, here: Machine) -> ModelChoice:
    return plan(here, Catalogue().manifest(name))


def test_vllm_needs_a_gpu_and_a_driver_and_ranks_below_what_runs() -> None:
    manifests = [Catalogue().manifest(name) for name in ("qwen3-vl-4b-vllm", "qwen2.5-coder-0.5b-q4")]
    without, with_old = machine("mini-pc"), machine("workstation-3090")
    assert planned("qwen3-vl-4b-vllm", without).obstacle == (
        "vLLM needs an NVIDIA GPU, and there is none: serve it on another machine"
    )
    assert "need a driver from 580 on, and this one is 535.274.02" in planned("qwen3-vl-4b-vllm", with_old).obstacle
    for here in (without, with_old):
        ranked = choose(replace(here, tools=("llama-server",)), manifests)
        assert [choice.model for choice in ranked] == ["qwen2.5-coder-0.5b-q4", "qwen3-vl-4b-vllm"]
        assert not ranked[-1].runs


def test_vllm_is_held_to_memory_and_takes_its_share_of_the_gpu() -> None:
    assert "needs about 12084 MB at its peak" in planned("qwen3-vl-4b-vllm", machine("laptop-8gb")).obstacle
    two = machine("workstation-two-gpus")
    free = replace(two, gpus=(two.gpus[0], replace(two.gpus[1], free_mb=25000.0)))
    choice = planned("qwen3-vl-4b-vllm", free)
    assert choice.obstacle == ""
    ((_, command),) = choice.commands
    assert command.startswith("CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=1 ")
    assert "--gpu-memory-utilization 0.47" in command  # 12084 of 25757 MB
    assert "--host 127.0.0.1 --port 8000 --max-model-len 8192" in command
    assert "--dtype" not in command


@pytest.mark.parametrize(("name", "board"), [("agx-orin", "orin"), ("thor", "thor")])
def test_a_jetsons_server_comes_from_its_container(name: str, board: str) -> None:
    ((_, command),) = planned("qwen3-vl-4b-vllm", machine(name)).commands
    assert command.startswith("docker run --rm --runtime nvidia --network host --ipc host -e HF_TOKEN ")
    assert '-v "${HF_HOME:-$HOME/.cache/huggingface}":/cache ' in command
    assert f" ghcr.io/nvidia-ai-iot/vllm:latest-jetson-{board} vllm serve Qwen/Qwen3-VL-4B-Instruct " in command
    ((_, command),) = planned("qwen3-vl-2b-llama-server", machine(name)).commands
    assert f"llama_cpp:latest-jetson-{board} llama-server -hf Qwen/Qwen3-VL-2B-Instruct-GGUF " in command


def test_a_jetson_without_docker_or_a_known_container_says_so() -> None:
    orin = machine("agx-orin")
    assert "docker is missing" in planned("qwen3-vl-4b-vllm", replace(orin, tools=())).obstacle
    assert orin.jetson
    unknown = replace(orin, jetson=replace(orin.jetson, l4t="41.0"))
    assert "no container is known" in planned("qwen3-vl-4b-vllm", unknown).obstacle


def test_a_server_that_is_not_installed_is_not_suggested() -> None:
    here = machine("workstation-3090")
    names = ("qwen3-vl-4b-ollama", "qwen3-vl-4b-llama-server", "qwen3-vl-4b-tensorrt-llm")
    for name, program in zip(names, ("ollama", "llama-server", "trtllm-serve"), strict=True):
        assert planned(name, here).obstacle.startswith(f"{program} is not installed: see https://")
        assert planned(name, replace(here, tools=(program,))).runs


def test_a_packaged_gguf_is_served_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACTFUL_WEIGHTS", str(tmp_path / "my models"))
    ((_, command),) = planned("smollm2-135m-q4", machine("mini-pc")).commands
    assert shlex.split(command)[:5] == [
        "llama-server",
        "-m",
        str(tmp_path / "my models/smollm2-135m-q4/SmolLM2-135M-Instruct.Q4_1.gguf"),
        "--alias",
        "smollm2-135m-q4",
    ]


def test_ollama_serves_before_it_pulls() -> None:
    (start, pull) = planned("qwen3-vl-4b-ollama", machine("thor")).commands
    assert start == ("start the server, in a terminal of its own", "ollama serve")
    assert pull == ("download the model into the server", "ollama pull qwen3-vl:4b-instruct")


def test_a_server_on_another_machine_needs_nothing_here() -> None:
    manifest = Catalogue().manifest("qwen3-vl-4b-vllm")
    far = manifest.model_copy(update={"source": manifest.source.model_copy(update={"url": "http://gpu-box:8000/v1"})})
    choice = plan(machine("mini-pc"), far)
    assert (choice.obstacle, choice.commands, choice.device) == ("", (), "server")
