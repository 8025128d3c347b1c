"""`python -m tests.soak`: a killed node, a quarter of an hour of talk, and what it makes of samples."""

import json
import subprocess
import sys
from subprocess import CompletedProcess

import pytest

from tests.patience import PATIENCE_S
from tests.soak import __main__ as soak
from tests.soak import faults
from tests.soak.faults import ACTIONS, FAULTS, STEPS, run_fault
from tests.soak.hours import SoakSample, growth_of


def soak_process(*arguments: str) -> CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.soak", *arguments, "--json"]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@pytest.mark.ros
def test_fault_is_measured_against_real_nodes() -> None:
    done = soak_process("--only", "kill_camera")
    (result,) = json.loads(done.stdout)["faults"]
    assert result["name"] == "kill_camera"
    assert result["lost"] == 0, result
    assert result["status_s"] is not None, result
    assert result["recovery_s"] is not None, result
    assert done.returncode == (not result["held"])  # how soon depends on how busy the machine is
    assert "1 of 1: kill_camera" in done.stderr


def test_quarter_of_an_hour_of_talk_is_measured() -> None:
    done = soak_process("--hours", "0.25")
    report = json.loads(done.stdout)
    assert [sample["hours"] for sample in report["samples"]] == pytest.approx([0.1, 0.2], abs=0.01)
    assert report["samples"][-1]["flags"] > 10
    assert report["growth_percent_an_hour"].keys() == {"memory_mb", "handles", "threads", "latency_ms"}
    assert done.returncode == bool(report["grows"])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "one of the arguments --faults --only --hours --minutes is required"),
        (["--faults", "quick", "--hours", "1"], "not allowed with argument --faults"),
        (["--only", ","], "there is no fault of no name"),
        (["--hours", "0.1"], "growth shows from 0.25 on"),
        (["--minutes", "1"], "growth shows from 2 on"),
        (["--only", "kill_all"], "there is no fault kill_all; the faults are kill_camera,"),
    ],
)
def test_a_wrong_call_is_refused_with_its_remedy(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        soak.main(arguments)
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err


def sample(hours: float, memory_mb: float) -> SoakSample:
    return SoakSample(hours=hours, memory_mb=memory_mb, handles=9, threads=2, latency_ms=0.0, flags=0)


def test_growth_is_the_slope_in_percent_of_the_first_sample() -> None:
    samples = tuple(sample(hours, 200 + 4 * hours) for hours in range(5))
    assert growth_of(samples, "memory_mb") == pytest.approx(2.0)
    assert growth_of(samples, "handles") == 0.0
    assert growth_of(samples[:1], "memory_mb") == 0.0


def test_each_step_is_one_that_is_known_and_the_quick_faults_are_of_every_kind() -> None:
    steps = [step for fault in FAULTS.values() for step in (fault.begin, fault.mend)]
    assert {kind for step in steps for kind in step} == STEPS.keys()
    assert {step["do"] for step in steps if "do" in step} == ACTIONS.keys()
    quick = {name.partition("_")[0] for name, fault in FAULTS.items() if fault.quick}
    assert {"kill", "stop", "camera", "microphone", "stamps", "clock", "disk"} <= quick


def test_a_trial_that_breaks_does_not_hold_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", "")
    monkeypatch.setattr(faults, "RunningGraph", lambda *_: dict[str, int]()["camera"])
    result = run_fault("kill_camera")
    assert (result.held, result.why) == (False, "KeyError: 'camera'")
    monkeypatch.setattr(soak, "_run_apart", lambda _: result)
    assert soak.main(["--only", "kill_camera"]) == 1
