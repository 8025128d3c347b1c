"""No library of ours reports its use: nothing is queued under an empty home, however the code is started."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
SPEECH = ROOT / "tests/norm_monitor/senses/conversation.flac"
# What would hide the defect, or move files out of the home that is looked at.
HIDING = ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK", "ROS_LOG_DIR")
DOCUMENTED = (".ros/log", ".cache/tactful")


def environment(home: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k not in HIDING and not k.startswith(("XDG_", "HF_"))}
    return {**kept, "HOME": str(home)}


def undocumented_files(home: Path) -> list[str]:
    files = [str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()]
    return [file for file in files if not file.startswith(DOCUMENTED)]


def run(command: list[str], home: Path) -> str:
    ended = subprocess.run(
        command, env=environment(home), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_hear_writes_nothing_into_an_empty_home(tmp_path: Path) -> None:
    said = run([str(ROOT / "tactful"), "hear", str(SPEECH), "--json"], tmp_path)
    assert "whales" in said.lower() or "wales" in said.lower()
    assert undocumented_files(tmp_path) == []


@pytest.mark.parametrize(
    "module",
    [
        "norm_core.engines.onnx.session",
        "norm_monitor.senses.speech.whisper",
        pytest.param("norm_nodes.ears_node", marks=pytest.mark.ros),
    ],
)
def test_a_program_that_imports_a_module_alone_reports_nothing(module: str, tmp_path: Path) -> None:
    program = (
        f"import {module}\n"
        "from norm_monitor.senses.speech.audio_front_end import Silero\n"
        "from huggingface_hub import constants\n"
        "Silero()\n"
        "print(constants.HF_HUB_DISABLE_TELEMETRY)\n"
    )
    assert run([sys.executable, "-c", program], tmp_path).split() == ["True"]
    assert undocumented_files(tmp_path) == []


def test_a_shell_in_the_environment_starts_other_programs_likewise(tmp_path: Path) -> None:
    program = "import onnxruntime, huggingface_hub.constants as c; print(c.HF_HUB_DISABLE_TELEMETRY)"
    shell = f'eval "$({ROOT}/tactful env)" && python -c "{program}"'
    assert run(["bash", "-c", shell], tmp_path).split() == ["True"]
    assert undocumented_files(tmp_path) == []
