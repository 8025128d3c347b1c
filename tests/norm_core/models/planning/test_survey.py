"""What a computer is found to have, by an nvidia-smi on PATH and files under a root of the test's own."""

from collections.abc import Callable
from pathlib import Path

import pytest

from norm_core.models.planning import survey as module
from norm_core.models.planning.survey import survey

Smi = Callable[[str], None]


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Smi:
    """Writes the program that answers as nvidia-smi."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")

    def write(body: str) -> None:
        program = tmp_path / "bin/nvidia-smi"
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)

    return write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root/proc").mkdir(parents=True)
    (tmp_path / "root/proc/meminfo").write_text("MemTotal: 8000000 kB\nMemAvailable: 5000000 kB\n")
    return tmp_path / "root"


def test_a_gpu_its_driver_and_its_free_memory(smi: Smi, root: Path) -> None:
    smi("echo '0, GPU-0f, NVIDIA GeForce RTX 4060 Laptop GPU, 8188, 7800, 580.95.05, 8.9'")
    found = survey(root)
    assert found.gpu is not None
    assert found.gpu.name == "NVIDIA GeForce RTX 4060 Laptop GPU"
    assert found.gpu.memory_mb == pytest.approx(8586, abs=1)
    assert found.gpu_free_mb == pytest.approx(8179, abs=1)
    assert (found.cuda, found.faults) == (13, ())
    assert (found.gpu.compute_capability, found.gpu.device) == (8.9, "0")
    assert (found.ram_mb, found.ram_free_mb) == (8192, 5120)


def test_a_driver_that_fails_is_told_with_its_words(smi: Smi, root: Path) -> None:
    smi("echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18")
    found = survey(root)
    assert found.gpus == ()
    assert found.faults == (
        "nvidia-smi failed: Failed to initialize NVML: Driver/library version mismatch; "
        "reload or reinstall NVIDIA's driver",
    )


def test_a_program_that_keeps_its_pipes_open_is_left_behind(
    smi: Smi, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SMI_TIMEOUT_S", 0.2)
    smi("tail -f /dev/null --pid=$$ & exec tail -f /dev/null")  # the child holds standard output
    assert "gave no answer in 0.2 s" in survey(root).faults[0]


@pytest.mark.parametrize("line", [",,,,,,", "a warning, with commas, and more", "0, GPU-0f, , 8188, 7800, 580.1, 8.9"])
def test_a_line_that_describes_no_gpu_is_told(smi: Smi, root: Path, line: str) -> None:
    smi(f"echo '{line}'")
    found = survey(root)
    assert found.gpus == ()
    assert "printed a line that is not understood" in found.faults[0]


@pytest.mark.parametrize(
    ("visible", "names"), [("1", ["B"]), ("1,0", ["A", "B"]), ("GPU-0", ["A"]), ("", []), ("-1", [])]
)
def test_hidden_gpus_do_not_count(
    smi: Smi, root: Path, monkeypatch: pytest.MonkeyPatch, visible: str, names: list[str]
) -> None:
    smi("echo '0, GPU-0f, A, 1000, 10, 580.1, 8.9'; echo '1, GPU-1f, B, 900, 800, 580.1, 8.9'")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = survey(root)
    assert [gpu.name for gpu in found.gpus] == names
    assert bool(found.faults) == (not names)


def test_a_card_without_a_driver_is_told(smi: Smi, root: Path) -> None:
    card = root / "sys/bus/pci/devices/0000:01:00.0"
    card.mkdir(parents=True)
    (card / "vendor").write_text("0x10de\n")
    (card / "class").write_text("0x030000\n")
    assert survey(root).faults == ("an NVIDIA GPU is in this machine and nvidia-smi is not: install NVIDIA's driver",)


@pytest.mark.parametrize(("release", "jetpack", "cuda"), [("36", "6", 12), ("38", "7.0", 13), ("40", "", None)])
def test_a_jetson_by_its_files(smi: Smi, root: Path, release: str, jetpack: str, cuda: int | None) -> None:
    (root / "etc").mkdir()
    (root / "etc/nv_tegra_release").write_text(f"# R{release} (release), REVISION: 4.3, GCID: 1, BOARD: generic\n")
    (root / "proc/device-tree").mkdir()
    (root / "proc/device-tree/model").write_bytes(b"NVIDIA Jetson AGX Orin Developer Kit\0")
    smi("echo '0, GPU-0f, Orin (nvgpu), [N/A], [N/A], 540.4.0, [N/A]'")
    found = survey(root)
    assert found.jetson is not None
    assert (found.jetson.l4t, found.jetson.jetpack, found.cuda) == (f"{release}.4.3", jetpack, cuda)
    assert found.gpu is not None
    assert found.gpu.name == "NVIDIA Jetson AGX Orin Developer Kit"
    assert found.gpu_free_mb == found.ram_free_mb  # shared with the CPU
