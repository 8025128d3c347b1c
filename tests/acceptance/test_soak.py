"""`./tactful soak` from outside: a killed node, and a quarter of an hour of talk."""

import json
import os
import signal
from concurrent.futures import Future
from threading import Event

import pytest

from tactful_cli.soak import verb
from tactful_cli.soak.faults import FaultResult
from tests.command_line import tactful, tactful_process


@pytest.mark.ros
def test_a_fault_is_run_against_the_nodes_and_measured() -> None:
    done = tactful_process("soak", "--only", "kill_camera", "--json")
    (result,) = json.loads(done.stdout)["faults"]
    assert result["name"] == "kill_camera"
    assert result["lost"] == 0, result
    assert result["status_s"] is not None, result
    assert result["recovery_s"] is not None, result
    assert done.returncode == (not result["held"])  # how soon depends on how busy the machine is
    assert "1 of 1: kill_camera" in done.stderr


def test_talk_of_a_quarter_of_an_hour_is_measured() -> None:
    done = tactful("soak", "--hours", "0.25", "--json")
    report = json.loads(done.stdout)
    assert [sample["hours"] for sample in report["samples"]] == pytest.approx([0.1, 0.2], abs=0.01)
    assert report["samples"][-1]["flags"] > 10
    assert report["growth_percent_an_hour"].keys() == {"memory_mb", "handles", "threads", "latency_ms"}
    assert done.returncode == bool(report["grows"])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "give --faults, --faults quick"),
        (["--faults", "quick", "--hours", "1"], "or give --hours H or --minutes M alone"),
        (["--only", "kill_camera", "--faults", "quick"], "give --faults, --faults quick"),
        (["--only", ","], "give --faults, --faults quick"),
        (["--hours", "0.1"], "0.25 hours and more"),
        (["--only", "kill_all"], "there is no fault kill_all; the faults are kill_camera,"),
    ],
)
def test_a_wrong_call_is_refused_with_its_remedy(arguments: list[str], problem: str) -> None:
    done = tactful("soak", *arguments)
    assert done.returncode == 2
    assert problem in done.stderr


def test_a_killed_fault_takes_no_other_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "run_fault", vanish)
    done = tactful("soak", "--only", "kill_camera,kill_ears", "--json")
    assert done.returncode == 1
    assert done.stdout.count("the process that ran it was killed") == 2


def test_no_other_fault_begins_after_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    futures, is_cancelled = list[Future[FaultResult]](), Event()

    def interrupt(submitted: list[Future[FaultResult]]) -> None:
        futures.extend(submitted)
        futures[-1].add_done_callback(lambda _: is_cancelled.set())
        raise KeyboardInterrupt

    monkeypatch.setattr(verb, "AT_ONCE", 1)
    monkeypatch.setattr(verb, "as_completed", interrupt)
    monkeypatch.setattr(verb, "_run_apart", lambda _: is_cancelled.wait(0.5))
    assert tactful("soak", "--faults", "quick").returncode
    assert sum(not future.cancelled() for future in futures) <= 1


def vanish(_: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
