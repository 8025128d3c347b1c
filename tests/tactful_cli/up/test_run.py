"""What `up` prints, keeps and waits for while its nodes run."""

import fcntl
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from queue import Queue
from threading import Timer
from typing import ClassVar, cast

import pytest
from rich.console import Console

from norm_core.records.json_codec import to_plain
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_core.records.status import Health, MonitorStatus, NodeState
from tactful_cli.lasting_reasons import GONE_AFTER_S, NEW_AFTER_S
from tactful_cli.up import run
from tactful_cli.up.node_board import (
    HANGS_AFTER_S,
    SETTLED_AFTER_S,
    SILENT_AFTER_S,
    STOOD_STILL_S,
    NodeBoard,
)
from tactful_cli.up.process import DELAYS_S, Backoff, ChildProcess, Event, OutputLine, ProcessEnd, free_dead_segments
from tactful_cli.up.profile import load
from tactful_cli.up.run import CLEAN, RuntimeSettings, merged
from tests.node_records import node_status


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    text = io.StringIO()
    monkeypatch.setattr(run, "out", Console(file=text, width=80, soft_wrap=True))
    return text


def test_missing_parts_are_lines_outside_a_terminal(printed: io.StringIO) -> None:
    board = NodeBoard(["monitor"], "/tactful")
    lacks = "robot speech: nobody publishes /robot_said; " + "start whatever publishes it " * 8
    board.take_launch(["monitor"], 0, 0)
    board.take_status(node_status(1, node="/tactful/monitor", reasons=(lacks,)), 1.0)
    run.show(board)
    assert printed.getvalue().splitlines() == [f"monitor: {lacks}"]


def test_leftover_folders_of_killed_runs_are_removed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    left, own, other = (tmp_path / f"tactful-up-{name}" for name in (f"{ended.pid}-a1", f"{os.getpid()}-b2", "notes"))
    for folder in (left, own, other):
        folder.mkdir()
        folder.joinpath("monitor.json").touch()
    run.remove_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([own, other])


def test_unheld_shared_memory_is_freed(tmp_path: Path) -> None:
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


def test_repeated_crashes_delay_the_restart_up_to_a_bound() -> None:
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


def test_runtime_setting_replaces_that_of_the_file() -> None:
    parameters = {"fusion.muted": ["a"], "fusion.open_s": 20.0}
    assert merged(parameters, {"fusion.muted": ["b"]}) == {"fusion.muted": ["b"], "fusion.open_s": 20.0}
    assert merged(parameters, {"fusion.muted": []}) == {"fusion.open_s": 20.0}  # its default is empty


def test_restarted_node_keeps_its_own_settings(settings: RuntimeSettings, tmp_path: Path) -> None:
    settings.take("/tactful/monitor", {"fusion.sensitivity": "keen"})
    settings.take("/left/tactful/monitor", {"fusion.open_s": 5.0})
    assert 'monitor: keeps fusion.sensitivity "keen"' in settings.keeping("monitor")
    settings.write_parameters(["monitor"], tmp_path / "parameters.json")
    written = json.loads((tmp_path / "parameters.json").read_text())
    assert written["/tactful/monitor"]["ros__parameters"] == {"fusion.sensitivity": "keen", "fusion.open_s": 20.0}


def test_dropped_setting_is_named(settings: RuntimeSettings) -> None:
    settings.take("/tactful/monitor", {"fusion.sensitivity": "keen"})
    assert "monitor: cannot start with fusion.sensitivity" in settings.drop(["monitor"])
    assert settings.keeping("monitor") == settings.drop(["monitor"]) == ""


WORDS = Utterance(stamp_ns=2, utterance_id="u", speaker=Speaker.USER, text="Where is the lift?", start_ns=1, end_ns=2)
ANSWER = RobotSpeech(stamp_ns=3, speech_id="r", state=SpeechEdge.START, text="Behind you.")


@pytest.mark.parametrize("code", [run.BAD_INPUT, run.SUPERSEDED])
def test_nodes_of_a_failed_process_start_alone_with_their_settings(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, lines = list[tuple[str, str]](), list[str]()

    class EndingProcess(ChildProcess):
        is_running = property(lambda self: not self._events.empty())

        def launch(self) -> int:
            if self.name == "status":
                change = {"node": "/tactful/selector", "settings": {"deadline_s": 9.0}}
                printed = {"settings": change, "utterance": to_plain(WORDS), "robot_speech": to_plain(ANSWER)}
                for kind in printed.keys() & set(self._command):
                    line = json.dumps({"kind": kind, "record": printed[kind]})
                    self._events.put(OutputLine(process=self, text=line))
                return 0
            starts.append((self.name, self.environment["ROS_SECURITY_ENCLAVE_OVERRIDE"]))
            self._events.put(ProcessEnd(process=self, code=code if "+" in self.name else run.CLEAN))
            return 0

    monkeypatch.setattr(run, "ChildProcess", EndingProcess)
    monkeypatch.setenv("ROS_SECURITY_ENABLE", "true")
    monkeypatch.delenv("ROS_SECURITY_ENCLAVE_OVERRIDE", raising=False)
    path = tmp_path / "robot.yaml"
    path.write_text("".join(f"/tactful/{node}: {{ros__parameters: }}\n" for node in ("monitor", "selector")))
    supervisor = run.Supervisor(load(str(path)), tmp_path, lines.append, run.show, lines.append)
    supervisor.run()
    assert supervisor.talk.turn_count == 2
    assert starts == [(name, "/tactful/monitor_selector") for name in ("monitor+selector", "monitor", "selector")]
    assert any(line.startswith("selector: keeps deadline_s 9.0") for line in lines)


ACTIVE = "all nodes are active"


def heartbeat(node: str, *reasons: str, state: NodeState = NodeState.ACTIVE, started_ns: int = 10) -> MonitorStatus:
    health = Health.DEGRADED if reasons else Health.OK
    return node_status(
        20, node=f"/tactful/{node}", state=state, health=health, reasons=reasons, instance_id="a", started_ns=started_ns
    )


def make_board() -> NodeBoard:
    node_board = NodeBoard(["camera", "ears"], "/tactful")
    node_board.take_launch(["camera"], 5, 0)
    node_board.take_launch(["ears"], 5, 0)
    return node_board


def make_active_board() -> NodeBoard:
    node_board = make_board()
    node_board.take_status(heartbeat("camera"), 0.0)
    node_board.take_status(heartbeat("ears"), 0.0)
    node_board.take_time(0.0)
    node_board.take_time(SETTLED_AFTER_S)
    assert node_board.is_settled
    return node_board


def test_reason_has_a_line_when_it_lasts_and_when_it_is_gone() -> None:
    node_board = make_active_board()
    lines: dict[float, list[str]] = {}
    for second in range(30):
        reasons = [f"ears: no audio for {second} s"] if second < 10 else []
        if new := node_board.take_status(heartbeat("ears", *reasons), float(second)):
            lines[second] = new
    assert lines == {
        NEW_AFTER_S: ["ears: no audio for 3 s"],
        10 + GONE_AFTER_S: ["ears: no longer: no audio for 3 s"],
    }


def test_reason_that_flickers_has_no_line() -> None:
    node_board = make_active_board()
    for second in range(1, 60):
        reasons = [f"no audio for {second} s"] if second % 2 else []
        assert node_board.take_status(heartbeat("ears", *reasons), float(second)) == []


def test_each_silence_of_a_node_has_one_line() -> None:
    node_board = make_active_board()
    node_board.take_status(heartbeat("camera"), SILENT_AFTER_S)
    assert node_board.take_time(SILENT_AFTER_S) == []
    (line,) = node_board.take_time(SILENT_AFTER_S + 1.0)
    assert line.startswith("ears: no heartbeat came for 3 s")
    assert node_board.take_time(SILENT_AFTER_S + 2.0) == []
    node_board.take_status(heartbeat("ears"), 8.0)
    node_board.take_status(heartbeat("camera"), 12.0)
    assert node_board.take_time(12.0) == [line]  # another silence, however soon


def test_time_without_reading_heartbeats_is_not_a_hang() -> None:
    node_board = make_active_board()
    for second in range(int(SETTLED_AFTER_S), int(HANGS_AFTER_S) + 1):
        node_board.take_status(heartbeat("camera"), float(second))
        node_board.take_time(float(second))
        assert node_board.find_silent(float(second), HANGS_AFTER_S) == set()
    assert node_board.find_silent(HANGS_AFTER_S + 1, HANGS_AFTER_S) == {"ears"}
    late_s = HANGS_AFTER_S + STOOD_STILL_S + 1  # nobody looked meanwhile
    node_board.take_time(late_s)
    assert node_board.find_silent(late_s, HANGS_AFTER_S) == set()


class ReadLate:
    """A process that has ended well before its end is read: killed at first, then by itself."""

    launches: ClassVar[list[str]] = []
    is_running = False
    launched_s = 0.0

    def __init__(self, name: str, _module: str, _arguments: object, events: Queue[Event], *, stdin: bool) -> None:
        self.name, self._events, self.environment = name, events, dict[str, str]()

    def launch(self) -> int:
        if self.name == "monitor":
            code = CLEAN if self.name in self.launches else -signal.SIGKILL
            Timer(3 * run.POLL_S, self._events.put, [ProcessEnd(process=cast(ChildProcess, self), code=code)]).start()
        self.launches.append(self.name)
        return 0

    def complaint(self) -> str:
        return "it said nothing"

    def end(self, number: signal.Signals) -> None: ...

    def wait(self, until_s: float) -> bool:
        return True


def test_killed_node_is_started_again_however_late_its_end_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "ChildProcess", ReadLate)
    path = tmp_path / "robot.yaml"
    path.write_text("/tactful/monitor:\n  ros__parameters: {fusion: {sensitivity: balanced}}\n")
    lines: list[str] = []
    supervisor = run.Supervisor(load(str(path)), tmp_path, lines.append, lambda _: None, lambda _: None)
    assert supervisor.run() == CLEAN
    assert ReadLate.launches.count("monitor") == 2
    assert "was ended by SIGKILL; restart 1 now" in lines[0]
