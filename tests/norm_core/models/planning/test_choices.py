"""The plan for described machines; their files say where each description comes from."""

from dataclasses import replace
from pathlib import Path

import pytest

from norm_core.models.catalogue import Catalogue
from norm_core.models.manifest import Manifest
from norm_core.models.planning.choices import ModelChoice, choose, plan, serving_commands
from norm_core.models.planning.machine import Gpu, Machine, read_machine
from norm_core.models.planning.speed import estimate_speed
from norm_core.runtime.config import ConfigError

MACHINES = Path(__file__).parent / "machines"
# The best model by machine, for a window a second, and where it runs.
BEST = {
    "agx-orin": ("qwen3-vl-8b-q4", "GPU"),
    "laptop-4gb": ("qwen3-vl-2b-awq", "GPU"),
    "laptop-8gb": ("internvl3.5-4b-nf4", "GPU"),
    "laptop-full-disk": ("internvl3.5-2b-q4", "GPU"),
    "mini-pc": ("qwen3-vl-2b-q4", "CPU"),
    "orin-nano-super": ("internvl3.5-2b-q4", "GPU"),
    "server-old-driver": ("qwen3-vl-2b-q4", "CPU"),
    "server-slice": ("qwen3-vl-8b-awq", "GPU"),
    "thor": ("qwen3-vl-8b-q4", "GPU"),
    "workstation-3090": ("qwen3-vl-8b", "GPU"),
    "workstation-two-gpus": ("qwen3-vl-8b-awq", "GPU"),
}
# What keeps the 4B model in nf4 from running there; it does where nothing is said.
OBSTACLES = {
    "agx-orin": "from the container ghcr.io/nvidia-ai-iot/vllm:latest-jetson-orin",
    "laptop-4gb": "needs about 4862 MB at its peak, and 3510 MB of GPU can be had",
    "laptop-full-disk": "and 3500 MB are free: set TACTFUL_WEIGHTS to a larger disk",
    "mini-pc": "it needs an NVIDIA GPU, and there is none",
    "orin-nano-super": "no wheel of torch for a Jetson's GPU is in the registry",
    "server-old-driver": "the driver 470.256.02 is too old: CUDA 12 needs 525, CUDA 13 needs 580",
    "thor": "from the container vllm/vllm-openai:latest",
}


@pytest.fixture(scope="module")
def manifests() -> list[Manifest]:
    catalogue = Catalogue()
    return [catalogue.manifest(name) for name in catalogue.names()]


def machine(name: str) -> Machine:
    return read_machine(MACHINES / f"{name}.yaml")


def choices(name: str, manifests: list[Manifest], beat_s: float | None = 1.0) -> dict[str, ModelChoice]:
    return {choice.model: choice for choice in choose(machine(name), manifests, beat_s)}


def test_every_description_says_where_it_comes_from() -> None:
    assert {path.stem for path in MACHINES.glob("*.yaml")} == set(BEST)
    assert all(machine(name).source.startswith("Made up") for name in BEST)


@pytest.mark.parametrize("name", sorted(BEST))
def test_the_plan(name: str, manifests: list[Manifest]) -> None:
    ranked = choices(name, manifests)
    best = next(iter(ranked.values()))
    assert (best.model, best.device) == BEST[name]
    assert best.runs
    assert best.peak_mb is not None
    assert best.free_mb is not None
    assert best.peak_mb <= best.free_mb * 0.9
    assert OBSTACLES.get(name, "") in ranked["qwen3-vl-4b-nf4"].obstacle
    assert bool(ranked["qwen3-vl-4b-nf4"].obstacle) == (name in OBSTACLES)


def test_cuda_12_and_13_install_from_different_locks(manifests: list[Manifest]) -> None:
    older, newer = (choices(name, manifests)["qwen3-vl-2b"] for name in ("workstation-3090", "laptop-8gb"))
    assert older.installation.download_mb > newer.installation.download_mb > 3000


def test_without_nvcc_llama_cpp_is_planned_on_the_cpu(manifests: list[Manifest]) -> None:
    assert choices("laptop-8gb", manifests)["qwen3-vl-2b-q4"].device == "GPU"
    assert choices("laptop-4gb", manifests)["qwen3-vl-2b-q4"].device == "CPU"


def test_what_is_surely_too_slow_for_the_beat_is_ranked_last(manifests: list[Manifest]) -> None:
    slow = choices("orin-nano-super", manifests, beat_s=0.1)
    assert slow["internvl3.5-2b-q4"].too_slow
    assert not slow["internvl3.5-2b-q4"].runs
    assert not choices("orin-nano-super", manifests, beat_s=None)["internvl3.5-2b-q4"].too_slow


def test_no_speed_is_claimed_of_a_gpu_without_figures(manifests: list[Manifest]) -> None:
    choice = choices("laptop-4gb", manifests)["qwen3-vl-2b-nf4"]
    assert choice.windows_per_s is None
    assert choice.speed_source == "no figures of NVIDIA GeForce GTX 1650 are known here"


def test_a_bound_by_arithmetic_is_lower_than_by_memory_alone(manifests: list[Manifest]) -> None:
    model = next(m for m in manifests if m.name == "qwen3-vl-4b")
    with_arithmetic = estimate_speed(model, "NVIDIA GeForce RTX 3090")
    memory_alone = 936.2e9 / (9 * 8876e6)
    assert with_arithmetic.windows_per_s is not None
    assert with_arithmetic.windows_per_s < memory_alone
    assert "71 TFLOP/s (a published table" in with_arithmetic.source


def test_the_freest_of_several_gpus_counts() -> None:
    assert machine("workstation-two-gpus").gpu_free_mb == 9800


def test_an_installed_extra_is_not_fetched_again(manifests: list[Manifest]) -> None:
    here = replace(machine("agx-orin"), extras=("transformers",))
    model = next(m for m in manifests if m.name == "qwen3-vl-2b")
    assert plan(here, model).runs
    assert plan(here, model).installation.download_mb == 0


def test_a_whole_model_may_run_on_the_cpu_where_torch_is(manifests: list[Manifest]) -> None:
    here = replace(machine("mini-pc"), extras=("transformers",))
    whole, small = (next(m for m in manifests if m.name == f"smolvlm2-{name}") for name in ("256m", "2.2b-nf4"))
    assert (plan(here, whole).device, plan(here, whole).obstacle) == ("CPU", "")
    assert plan(here, small).obstacle == "it needs an NVIDIA GPU, and there is none"


@pytest.mark.parametrize("quantization", ["awq", "gptq"])
def test_kernels_of_their_own_are_asked_for(manifests: list[Manifest], quantization: str) -> None:
    model = next(m for m in manifests if m.name == "qwen3-vl-2b").model_copy(update={"quantization": quantization})
    here = replace(machine("laptop-8gb"), extras=("transformers",))
    assert plan(here, model).obstacle == "its kernels are in the extra gptq: run ./tactful setup gptq"
    assert plan(replace(here, extras=("transformers", "gptq")), model).obstacle == ""


def test_a_model_of_unknown_need_may_be_tried(manifests: list[Manifest]) -> None:
    unknown = next(m for m in manifests if m.name == "qwen3-vl-8b").model_copy(update={"memory": None})
    choice = plan(machine("laptop-8gb"), unknown)
    assert (choice.peak_mb, choice.obstacle, choice.is_estimate) == (None, "", True)


def test_weights_that_are_here_need_no_disk(manifests: list[Manifest]) -> None:
    model = next(m for m in manifests if m.name == "qwen3-vl-4b-nf4")
    here = replace(machine("laptop-full-disk"), extras=("transformers",))
    assert "MB of disk" in plan(here, model).obstacle
    assert plan(here, model, pulled=True).obstacle == ""


def test_a_jetsons_server_comes_from_its_container(manifests: list[Manifest]) -> None:
    model = next(m for m in manifests if m.name == "qwen3-vl-4b-vllm")
    (command,) = serving_commands(machine("orin-nano-super"), model)
    assert command.startswith("docker run --runtime nvidia --network host ghcr.io/nvidia-ai-iot/vllm")
    assert "--host 127.0.0.1" in command
    (command,) = serving_commands(machine("laptop-8gb"), model)
    assert (
        command
        == ".venv-serve/bin/vllm serve Qwen/Qwen3-VL-4B-Instruct --host 127.0.0.1 --port 8000 --max-model-len 8192"
    )


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [("580.95.05", 13), ("579.1", 12), ("525.60.13", 12), ("470.1", None), ("", None), ("N/A", None)],
)
def test_the_driver_tells_the_newest_cuda(driver: str, cuda: int | None) -> None:
    assert Gpu(name="any", driver=driver).cuda == cuda


def test_a_wrong_description_names_the_place(tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_text("architecture: x86_64\ngpus: [{name: A, memory_mb: much}]\n")
    with pytest.raises(ConfigError, match=r"odd\.yaml: gpus\.0\.memory_mb: "):
        read_machine(tmp_path / "odd.yaml")
