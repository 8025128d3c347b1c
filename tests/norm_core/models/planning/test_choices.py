"""The plan for described machines; their files say where each description comes from."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import Manifest
from norm_core.models.planning.choices import ModelChoice, choose, plan
from norm_core.models.planning.machine import Machine, read_machine
from norm_core.runtime.config import ConfigError

MACHINES = Path(__file__).parent / "machines"
PAGE = Path(__file__).parents[4] / "docs/how-to/models.md"
# The best model by machine, and where it runs; none where nothing runs.
BEST = {
    "agx-orin": ("qwen3-vl-8b-vllm", "server"),
    "laptop-4gb": ("qwen3-vl-2b-nf4", "GPU"),
    "laptop-8gb": ("internvl3.5-4b-nf4", "GPU"),
    "laptop-full-disk": ("internvl3.5-1b", "GPU"),
    "mini-pc": ("qwen3-vl-2b-llama-server", "server"),
    "orin-nano-super": ("qwen3-vl-2b-llama-server", "server"),
    "server-h100": ("qwen3-vl-8b", "GPU"),
    "server-old-driver": None,
    "thor": ("qwen3-vl-8b-vllm", "server"),
    "workstation-3090": ("qwen3-vl-8b", "GPU"),
    "workstation-two-gpus": ("qwen3-vl-8b-nf4", "GPU"),
}
# What keeps the 4B model in nf4 from running there; it does where nothing is said.
OBSTACLES = {
    "agx-orin": "JetPack 6 has Python 3.10, and Tactful needs 3.11: run Tactful in its container",
    "laptop-4gb": "needs about 4862 MB at its peak, and 3510 MB of GPU can be had",
    "laptop-full-disk": "and 3500 MB are free: free some, or set TACTFUL_WEIGHTS to a folder on a larger disk",
    "mini-pc": "it needs an NVIDIA GPU, and there is none",
    "orin-nano-super": "It has no nvcc: serve the model beside it, as ./tactful models setup qwen3-vl-2b-llama-server",
    "server-old-driver": "the driver 470.256.02 is too old: CUDA 12 needs 525, CUDA 13 needs 580",
    "thor": "no wheel of torch for a Jetson's GPU is in the registry",
}


@pytest.fixture(scope="module")
def manifests() -> list[Manifest]:
    catalogue = Catalogue()
    return [catalogue.manifest(name) for name in catalogue.names()]


def machine(name: str) -> Machine:
    return read_machine(MACHINES / f"{name}.yaml")


def choices(name: str, manifests: list[Manifest]) -> dict[str, ModelChoice]:
    return {choice.model: choice for choice in choose(machine(name), manifests)}


@pytest.mark.parametrize("name", sorted(BEST))
def test_the_plan(name: str, manifests: list[Manifest]) -> None:
    ranked = choices(name, manifests)
    best = next(iter(ranked.values()))
    assert ((best.model, best.device) if best.runs else None) == BEST[name]
    assert OBSTACLES.get(name, "") in ranked["qwen3-vl-4b-nf4"].obstacle
    assert bool(ranked["qwen3-vl-4b-nf4"].obstacle) == (name in OBSTACLES)


def test_the_page_names_what_choose_ranks_first(manifests: list[Manifest]) -> None:
    rows = re.findall(r"machines/([\w-]+)\.yaml\) \| `([\w.-]+)` \| (\w+).*? \| ([\d.]+) GB", PAGE.read_text())
    assert len(rows) >= 6
    for name, model, device, peak_gb in rows:
        best = next(iter(choices(name, manifests).values()))
        assert (model, device) == (best.model, best.device)
        assert best.peak_mb == pytest.approx(float(peak_gb) * 1e3, abs=50)


def test_compressed_tensors_are_planned_with_the_memory_of_dense_weights(manifests: list[Manifest]) -> None:
    dense, packed, nf4 = (next(m for m in manifests if m.name == f"qwen3-vl-4b{end}") for end in ("", "-awq", "-nf4"))
    assert dense.memory
    assert packed.memory
    assert packed.memory.load_mb > dense.memory.load_mb
    here = replace(machine("workstation-two-gpus"), gpus=(replace(machine("laptop-8gb").gpus[0], free_mb=25000),))
    assert "become 16-bit ones" in plan(here, packed).caution
    ranked = [choice.model for choice in choose(here, [packed, dense, nf4])]
    assert ranked == ["qwen3-vl-4b", "qwen3-vl-4b-awq", "qwen3-vl-4b-nf4"]
    assert plan(here, packed).download_mb < plan(here, nf4).download_mb


def test_weights_are_quantized_at_load_only_where_16_bits_do_not_fit(manifests: list[Manifest]) -> None:
    here = choices("server-h100", manifests)
    order = list(here)
    for name in (name for name in order if name.endswith("-nf4")):
        assert here[name].caution == "slower than its 16-bit weights, which fit"
        assert order.index(name) > order.index("smolvlm2-256m")
    assert choices("laptop-8gb", manifests)["internvl3.5-4b-nf4"].caution == ""


def test_bf16_is_slow_before_ampere_and_kernels_have_an_oldest_gpu(manifests: list[Manifest]) -> None:
    model = next(m for m in manifests if m.name == "qwen3-vl-2b-nf4")
    assert "compute capability 7.5, and computes in bf16 only from 8.0" in plan(machine("laptop-4gb"), model).caution
    assert "bf16" not in plan(machine("laptop-8gb"), model).caution
    volta = replace(machine("laptop-8gb").gpus[0], compute_capability=7.0)
    here = replace(machine("laptop-8gb"), gpus=(volta,))
    assert "compute capability 7.0, and CUDA 13 needs 7.5" in plan(here, model).obstacle
    fp8 = model.model_copy(update={"quantization": "fp8", "memory": None})
    ampere = replace(machine("laptop-8gb").gpus[0], compute_capability=8.6)
    assert "kernels for fp8 need 8.9" in plan(replace(here, gpus=(ampere,)), fp8).obstacle


def test_on_a_cpu_16_bit_weights_are_counted_as_32(manifests: list[Manifest]) -> None:
    here = replace(machine("mini-pc"), extras=("transformers",))
    model = next(m for m in manifests if m.name == "smolvlm2-256m")
    assert model.memory
    assert plan(here, model).peak_mb == 2 * model.memory.peak_mb


def test_a_gpu_of_unknown_memory_is_not_taken_to_share_that_of_the_cpu(manifests: list[Manifest]) -> None:
    gpu = replace(machine("laptop-8gb").gpus[0], memory_mb=None, free_mb=None)
    here = replace(machine("laptop-8gb"), gpus=(gpu,))
    assert here.gpu_free_mb is None
    model = next(m for m in manifests if m.name == "qwen3-vl-2b-nf4")
    assert plan(here, model).obstacle == "the GPU memory of this machine is not known"


def test_the_reserve_is_stated_and_packages_need_twice_their_room(manifests: list[Manifest]) -> None:
    model = next(m for m in manifests if m.name == "qwen2.5-coder-0.5b-q4")
    here = replace(machine("mini-pc"), disk_free_mb=1100.0)
    assert plan(here, model).obstacle == (
        "needs 983 MB of disk and 200 MB in reserve, and 1100 MB are free: free some, or set TACTFUL_WEIGHTS to a "
        "folder on a larger disk"
    )
    assert plan(here, model, pulled=True).obstacle == ""


@pytest.mark.parametrize("quantization", ["awq", "gptq"])
def test_what_only_a_server_reads_is_not_loaded_here(manifests: list[Manifest], quantization: str) -> None:
    model = next(m for m in manifests if m.name == "qwen3-vl-2b").model_copy(update={"quantization": quantization})
    here = replace(machine("laptop-8gb"), extras=("transformers",))
    assert plan(here, model).obstacle.endswith("are read by a server alone: serve them with vLLM")


def test_a_wrong_description_names_the_place(tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_text("architecture: x86_64\ngpus: [{name: A, memory_mb: much}]\n")
    with pytest.raises(ConfigError, match=r"odd\.yaml: gpus\.0\.memory_mb: "):
        read_machine(tmp_path / "odd.yaml")
