"""What `up` prints, keeps and waits for while its nodes run."""

import fcntl
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from norm_core.records.status import Health, MonitorStatus, NodeState
from tactful_cli.up import run
from tactful_cli.up.node_board import (
    HANGS_AFTER_S,
    SETTLED_AFTER_S,
    SILENT_AFTER_S,
    STATED_AGAIN_AFTER_S,
    STOOD_STILL_S,
    NodeBoard,
)
from tactful_cli.up.process import DELAYS_S, Backoff, ChildProcess, OutputLine, ProcessEnd, free_dead_segments
from tactful_cli.up.profile import load
from tactful_cli.up.run import RuntimeSettings, merged
from tests.node_records import node_status


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    text = io.StringIO()
    monkeypatch.setattr(run, "out", Console(file=text, width=80, soft_wrap=True))
    return text


def test_what_is_missing_is_told_in_lines_where_nobody_reads_a_table(printed: io.StringIO) -> None:
    board = NodeBoard(["monitor"], "/tactful")
    lacks = "robot speech: nobody publishes /robot_said; " + "start whatever publishes it " * 8
    board.take_launch(["monitor"], 0, 0)
    board.take_status(node_status(1, node="/tactful/monitor", reasons=(lacks,)), 1.0)
    run.show(board)
    assert printed.getvalue().splitlines() == [f"monitor: {lacks}"]


def test_folders_that_killed_runs_left_are_removed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    left, own, other = (tmp_path / f"tactful-up-{name}" for name in (f"{ended.pid}-a1", f"{os.getpid()}-b2", "notes"))
    for folder in (left, own, other):
        folder.mkdir()
        folder.joinpath("monitor.json").touch()
    run.remove_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([own, other])


def test_shared_memory_that_nobody_holds_is_freed(tmp_path: Path) -> None:
    names = {use: f"fastrtps_{number:016x}" for number, use in enumerate(("dead", "held", "new"))}
    for use, name in names.items():
        for path in (tmp_path / name, tmp_path / f"{name}_el"):
            path.touch()
            os.utime(path, None if use == "new" else (1, 1))
    (tmp_path / "fastrtps_port7410_el").touch()
    with (tmp_path / f"{names['held']}_el").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert free_dead_segments(tmp_path) == 1
    left = {path.name.removesuffix("_el") for path in tmp_path.iterdir()}
    assert left == {names["held"], names["new"], "fastrtps_port7410"}


def test_crashes_in_a_row_wait_longer_up_to_a_bound() -> None:
    backoff, delays = Backoff(), []
    for _ in range(len(DELAYS_S) + 3):
        backoff, delay_s = backoff.after(0.5, bad_input=False)
        delays.append(delay_s)
    assert delays[0] == 0.0
    assert delays == sorted(delays)
    assert delays[-1] == max(DELAYS_S)
    assert backoff.restarts == len(delays)


@pytest.fixture
def settings(tmp_path: Path) -> RuntimeSettings:
    path = tmp_path / "robot.yaml"
    path.write_text("/tactful/monitor:\n  ros__parameters: {fusion: {sensitivity: balanced, open_s: 20.0}}\n")
    return RuntimeSettings(load(str(path)))


def changed(node: str, **values: object) -> str:
    return json.dumps({"node": node, "settings": {name.replace("__", "."): value for name, value in values.items()}})


def test_a_setting_takes_the_place_of_what_the_file_says() -> None:
    given = {"fusion.muted": ["a"], "fusion.open_s": 20.0}
    assert merged(given, {"fusion.muted": ["b"]}) == {"fusion.muted": ["b"], "fusion.open_s": 20.0}
    assert merged(given, {"fusion.muted": []}) == {"fusion.open_s": 20.0}  # its default is empty


def test_a_node_keeps_what_was_set_of_it_alone(settings: RuntimeSettings, tmp_path: Path) -> None:
    assert settings.take(changed("/tactful/monitor", fusion__sensitivity="keen"))
    assert settings.take(changed("/left/tactful/monitor", fusion__open_s=5.0))
    assert 'monitor: keeps fusion.sensitivity "keen"' in settings.keeping("monitor")
    settings.write_parameters(["monitor"], tmp_path / "parameters.json")
    written = json.loads((tmp_path / "parameters.json").read_text())
    assert written["/tactful/monitor"]["ros__parameters"] == {"fusion.sensitivity": "keen", "fusion.open_s": 20.0}


def test_a_setting_that_is_dropped_is_named_and_gone(settings: RuntimeSettings) -> None:
    settings.take(changed("/tactful/monitor", fusion__sensitivity="keen"))
    assert "monitor: cannot start with fusion.sensitivity" in settings.drop(["monitor"])
    assert settings.keeping("monitor") == settings.drop(["monitor"]) == ""


@pytest.mark.parametrize("code", [run.BAD_INPUT, run.SUPERSEDED])
def test_nodes_of_one_process_start_alone_where_one_cannot_in_its_enclave_with_what_was_set(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, lines = list[tuple[str, str]](), list[str]()

    class EndingProcess(ChildProcess):
        is_running = property(lambda self: not self._events.empty())

        def launch(self) -> int:
            if self.name == "status":
                text = changed("/tactful/selector", deadline_s=9.0)
                self._events.put(OutputLine(process=self, text=text))
                return 0
            starts.append((self.name, self.environment["ROS_SECURITY_ENCLAVE_OVERRIDE"]))
            self._events.put(ProcessEnd(process=self, code=code if "+" in self.name else run.CLEAN))
            return 0

    monkeypatch.setattr(run, "ChildProcess", EndingProcess)
    monkeypatch.setenv("ROS_SECURITY_ENABLE", "true")
    monkeypatch.delenv("ROS_SECURITY_ENCLAVE_OVERRIDE", raising=False)
    path = tmp_path / "robot.yaml"
    path.write_text("".join(f"/tactful/{node}: {{ros__parameters: }}\n" for node in ("monitor", "selector")))
    run.Supervisor(load(str(path)), tmp_path, lines.append, run.show, lines.append).run()
    assert starts == [(name, "/tactful/monitor_selector") for name in ("monitor+selector", "monitor", "selector")]
    assert any(line.startswith("selector: keeps deadline_s 9.0") for line in lines)


ACTIVE = "all nodes are active"


def heartbeat(node: str, *reasons: str, state: NodeState = NodeState.ACTIVE, started_ns: int = 10) -> MonitorStatus:
    health = Health.DEGRADED if reasons else Health.OK
    return node_status(
        20, node=f"/tactful/{node}", state=state, health=health, reasons=reasons, instance_id="a", started_ns=started_ns
    )


def board() -> NodeBoard:
    made = NodeBoard(["camera", "ears"], "/tactful")
    made.take_launch(["camera"], 5, 0)
    made.take_launch(["ears"], 5, 0)
    return made


def active_board() -> NodeBoard:
    made = board()
    made.take_status(heartbeat("camera"), 0.0)
    made.take_status(heartbeat("ears"), 0.0)
    made.take_time(0.0)
    made.take_time(SETTLED_AFTER_S)
    assert made.is_settled
    return made


def test_a_reason_is_told_when_it_comes_and_when_it_goes() -> None:
    made = active_board()
    assert made.take_status(heartbeat("ears", "ears: no audio for 3 s"), 1.0) == ["ears: no audio for 3 s"]
    assert made.take_status(heartbeat("ears", "ears: no audio for 3 s"), 2.0) == []
    assert made.take_status(heartbeat("ears"), 3.0) == ["ears: no longer: ears: no audio for 3 s"]


def test_a_reason_that_flickers_is_told_seldom() -> None:
    made = active_board()
    told = []
    for second in range(1, 30):
        reasons = [f"no audio for {second} s"] if second % 2 else []
        told += made.take_status(heartbeat("ears", *reasons), float(second))
    assert told == ["ears: no audio for 1 s", "ears: no longer: no audio for 1 s"]
    later_s = STATED_AGAIN_AFTER_S + 60.0
    assert made.take_status(heartbeat("ears", "no audio for 99 s"), later_s) == ["ears: no audio for 99 s"]


def test_a_node_that_hangs_is_told() -> None:
    made = active_board()
    made.take_status(heartbeat("camera"), SILENT_AFTER_S)
    assert made.take_time(SILENT_AFTER_S) == []
    (told,) = made.take_time(SILENT_AFTER_S + 1.0)
    assert told.startswith("ears: no heartbeat came for 3 s")
    assert made.take_time(SILENT_AFTER_S + 2.0) == []
    made.take_status(heartbeat("ears"), 8.0)
    made.take_status(heartbeat("camera"), 12.0)
    assert made.take_time(12.0) == [told]  # another silence, however soon


def test_a_node_hangs_only_by_the_time_in_which_its_heartbeats_could_be_read() -> None:
    made = active_board()
    for second in range(int(SETTLED_AFTER_S), int(HANGS_AFTER_S) + 1):
        made.take_status(heartbeat("camera"), float(second))
        made.take_time(float(second))
        assert made.hanging(float(second)) == set()
    assert made.hanging(HANGS_AFTER_S + 1) == {"ears"}
    late_s = HANGS_AFTER_S + STOOD_STILL_S + 1  # nobody looked meanwhile
    made.take_time(late_s)
    assert made.hanging(late_s) == set()
