"""What `soak` makes of samples, and what its robot sends on Tactful's own topics."""

import os
import re
import time
from contextlib import nullcontext
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from norm_core.runtime.errors import TactfulError
from tactful_cli.soak import faults, verb
from tactful_cli.soak.faults import ACTIONS, FAULTS, STEPS, FaultResult, run_fault
from tactful_cli.soak.hours import NODES, SoakSample, growth_of, run_minutes
from tactful_cli.soak.running_graph import STUDY
from tests.command_line import tactful

REFUSAL = CompletedProcess((), 1, stderr="chattr: Operation not permitted")


@pytest.mark.parametrize(
    ("arguments", "count"),
    [(["--faults"], len(FAULTS)), (["--faults", "--faults"], len(FAULTS)), (["--faults", "quick"], 15)],
)
def test_faults_without_a_value_are_all(monkeypatch: pytest.MonkeyPatch, arguments: list[str], count: int) -> None:
    monkeypatch.setattr(verb, "_run", lambda names: [FaultResult(name=name, held=True) for name in names])
    done = tactful("soak", *arguments, "--json")
    assert (done.returncode, done.stdout.count('"name"')) == (0, count)


def sample(hours: float, memory_mb: float) -> SoakSample:
    return SoakSample(hours=hours, memory_mb=memory_mb, handles=9, threads=2, latency_ms=0.0, flags=0)


@pytest.mark.parametrize("sees", [True, False])
def test_nodes_are_measured_each_minute(monkeypatch: pytest.MonkeyPatch, sees: bool) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", "")
    line = SimpleNamespace(kind="presence", read=lambda: SimpleNamespace(stamp_ns=time.time_ns()))
    graph = SimpleNamespace(
        pids=lambda: dict.fromkeys(NODES, os.getpid()),
        take_messages=lambda: [(time.monotonic(), line)] * sees,
        reasons=lambda _: ["camera: is blind"],
        until=lambda *_: time.sleep(0.01),
    )
    monkeypatch.setattr("tactful_cli.soak.hours.RunningGraph", lambda *_, **__: nullcontext(graph))
    if not sees:
        with pytest.raises(TactfulError, match=r"stopped after 0 min: no pictures .* in the last minute; .* blind"):
            run_minutes(2)
        return
    first, last = run_minutes(2).samples
    assert [first.memory_mb, last.memory_mb] == [*first.memory_by_process.values(), *last.memory_by_process.values()]
    assert [*first.memory_by_process] == ["+".join(NODES)]
    assert first.threads > 0


def test_one_minute_is_too_short_for_growth() -> None:
    assert "growth is seen in 2 minutes" in tactful("soak", "--minutes", "1").stderr


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


def idle_graph(folder: Path, *_: object) -> Any:
    (folder / STUDY).mkdir()
    return nullcontext(SimpleNamespace(folder=folder))


@pytest.mark.parametrize(
    ("name", "graph", "done", "held", "why"),
    [
        ("kill_camera", lambda *_: dict[str, int]()["camera"], None, False, "KeyError: 'camera'"),
        ("disk_read_only", idle_graph, REFUSAL, None, "not run: .*; run it as root, with TMPDIR on ext4"),
        ("disk_read_only", idle_graph, FileNotFoundError("chattr"), None, "not run: chattr; install e2fsprogs"),
    ],
)
def test_a_fault_that_cannot_be_made_fails_or_is_not_run_and_says_why(
    monkeypatch: pytest.MonkeyPatch, name: str, graph: Any, done: Any, *, held: bool | None, why: str
) -> None:
    for variable in ("ROS_DOMAIN_ID", "TACTFUL_MODELS"):
        monkeypatch.setenv(variable, "")
    monkeypatch.setattr(faults, "RunningGraph", graph)
    monkeypatch.setattr(faults, "_measure", lambda name, fault, graph: faults._take(fault.begin, graph))  # noqa: SLF001
    monkeypatch.setattr("subprocess.run", MagicMock(side_effect=[done]))
    result = run_fault(name)
    assert result.held is held
    assert re.fullmatch(why, result.why)
    monkeypatch.setattr(verb, "_run_apart", lambda _: result)
    assert tactful("soak", "--only", name).returncode == (held is False)
