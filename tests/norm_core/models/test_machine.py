"""What a computer is found to have, by an nvidia-smi on PATH of the test's own."""

from collections.abc import Callable
from pathlib import Path

import pytest

from norm_core.models import machine as module
from norm_core.models.machine import survey_machine

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


def test_a_gpu_and_its_free_memory(smi: Smi) -> None:
    smi("echo '0, GPU-0f, NVIDIA GeForce RTX 4060 Laptop GPU, 8188, 7800'")
    found = survey_machine()
    assert found.gpu is not None
    assert (found.gpu.name, found.gpu.device) == ("NVIDIA GeForce RTX 4060 Laptop GPU", "0")
    assert found.gpu.memory_mb == pytest.approx(8586, abs=1)
    assert found.gpu_free_mb == pytest.approx(8179, abs=1)
    assert found.faults == ()


def test_the_message_of_a_failed_driver_is_a_fault(smi: Smi) -> None:
    smi("echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18")
    found = survey_machine()
    assert found.gpus == ()
    assert found.faults == (
        "nvidia-smi failed: Failed to initialize NVML: Driver/library version mismatch; "
        "reload or reinstall NVIDIA's driver",
    )


def test_a_program_that_keeps_its_pipes_open_is_left_behind(smi: Smi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMI_TIMEOUT_S", 0.2)
    smi("tail -f /dev/null --pid=$$ & exec tail -f /dev/null")  # the child holds standard output
    assert "gave no answer in 0.2 s" in survey_machine().faults[0]


@pytest.mark.parametrize("line", [",,,,,,", "a warning, with commas, and more", "0, GPU-0f, , 8188, 7800"])
def test_an_unknown_line_of_nvidia_smi_is_a_fault(smi: Smi, line: str) -> None:
    smi(f"echo '{line}'")
    found = survey_machine()
    assert found.gpus == ()
    assert "printed an unknown line" in found.faults[0]


@pytest.mark.parametrize(
    ("visible", "names"), [("1", ["B"]), ("1,0", ["A", "B"]), ("GPU-0", ["A"]), ("", []), ("-1", [])]
)
def test_hidden_gpus_do_not_count(smi: Smi, monkeypatch: pytest.MonkeyPatch, visible: str, names: list[str]) -> None:
    smi("echo '0, GPU-0f, A, 1000, 10'; echo '1, GPU-1f, B, 900, 800'")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = survey_machine()
    assert [gpu.name for gpu in found.gpus] == names
    assert bool(found.faults) == (not names)


def test_a_gpu_without_memory_of_its_own_shares_that_of_the_cpu(smi: Smi) -> None:
    smi("echo '0, GPU-0f, Orin (nvgpu), [N/A], [N/A]'")
    found = survey_machine()
    assert found.gpu_free_mb == found.ram_free_mb
