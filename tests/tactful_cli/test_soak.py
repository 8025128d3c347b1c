"""What `soak` makes of samples, and what its robot sends on Tactful's own topics."""

import pytest

from tactful_cli.soak.faults import ACTIONS, FAULTS, STEPS, run_fault
from tactful_cli.soak.hours import SoakSample, growth_of


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
    assert {"kill", "stop", "camera", "microphone", "stamps", "clock", "disk", "second", "foreign"} <= quick


def test_a_node_that_is_not_there_to_be_harmed_fails_its_fault_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROS_DOMAIN_ID", "TACTFUL_MODELS"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr("tactful_cli.soak.faults.RunningGraph", lambda *_: dict[str, int]()["camera"])
    assert run_fault("kill_camera").why == "KeyError: 'camera'"
