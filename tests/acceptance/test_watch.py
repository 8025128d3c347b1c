"""`./tactful watch` from outside: live nodes, and a publisher that Tactful did not make."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.tactful_up import TACTFUL, running, running_up, say
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.ros

PROFILE = """
/tactful/monitor:
  ros__parameters: {windows.sources: [utterances]}
"""
HOSTILE = "Where\x1b[2J can I\x9b31m [red]buy[/red] a ticket?"
BEGIN_NS = 1_000 * 10**9
TALK = [  # speaker, start, end, words: a question that waits nine seconds for its answer
    ("USER", 1, 3, HOSTILE),
    ("ROBOT", 12, 14, "You can buy it at the counter."),
    ("UNKNOWN", 60, 60, ""),  # nothing more was said for a minute
]


def test_a_talk_and_its_flag_are_told_while_nodes_come_and_go(tmp_path: Path, observer: Observer) -> None:
    profile = tmp_path / "robot.yaml"
    profile.write_text(PROFILE, encoding="utf-8")
    with running("watch") as watch:
        with running_up(tmp_path / "log", str(profile)) as up:
            up.wait_for("all nodes are active")
            watch.wait_for("monitor: ")
            say(observer, "/tactful/utterances", TALK, readers=3, begin_ns=BEGIN_NS)
            assert "[red]buy[/red] a ticket?" in watch.wait_for("person")
            assert "conversational mechanics" in watch.wait_for("#1 ERROR opened")
            watch.wait_for("why")
            watch.wait_for("instead")
            watch.wait_for("#1 ERROR closed")
            os.kill(up.pid_of("monitor"), signal.SIGKILL)
            watch.wait_for("monitor: started anew")
            assert up.interrupt() == 0
            up.wait_for("2 turns: 1 error (")
        watch.wait_for("to ended")
        earlier = observer.readers("/tactful/utterances")
        with running_up(tmp_path / "log", str(profile)) as up:
            watch.wait_for("monitor: started anew", times=2)
            observer.until(
                lambda: len(observer.readers("/tactful/utterances") - earlier) == 2, "the readers of monitor and up"
            )
            say(observer, "/tactful/utterances", TALK, readers=3, begin_ns=BEGIN_NS)
            watch.wait_for("#2 ERROR opened")
            assert up.interrupt() == 0
        assert not set("".join(watch.lines)) & set("\x1b\x9b")
        assert watch.interrupt() == 0
        watch.wait_for("4 turns: 2 errors (")


def test_a_silence_beyond_the_limit_is_told_as_an_error(tmp_path: Path, observer: Observer) -> None:
    profile = tmp_path / "robot.yaml"
    profile.write_text(PROFILE.replace("}", ", fusion.answer_within_s: 4.0}"), encoding="utf-8")
    talk = [("USER", 1, 3, "We can't get in."), ("ROBOT", 8, 10, "You need your bracelet."), ("UNKNOWN", 60, 60, "")]
    with running("watch") as watch, running_up(tmp_path / "log", str(profile)) as up:
        up.wait_for("all nodes are active")
        watch.wait_for("monitor: ")
        say(observer, "/tactful/utterances", talk, readers=3, begin_ns=BEGIN_NS)
        watch.wait_for("#1 ERROR opened")
        assert "5.0 s" in watch.wait_for("why")
        assert up.interrupt() == 0


def test_a_slow_robot_s_report_of_an_earlier_job_ends_no_wait(tmp_path: Path, observer: Observer) -> None:
    profile = tmp_path / "robot.yaml"
    profile.write_text(PROFILE, encoding="utf-8")
    talk = [
        ("USER", 1, 3, "Drive to the door."), ("ROBOT", 8, 9, "Moving."), ("ROBOT", 16, 17, "Done."),
        ("USER", 25, 27, "Turn to the left."), ("ROBOT", 32, 33, "Turning."),
        ("USER", 36, 38, "Then take a picture."), ("ROBOT", 39, 40, "Done."), ("ROBOT", 58, 59, "Sent."),
        ("UNKNOWN", 120, 120, ""),
    ]  # fmt: skip
    with running("watch") as watch, running_up(tmp_path / "log", str(profile)) as up:
        up.wait_for("all nodes are active")
        watch.wait_for("monitor: ")
        say(observer, "/tactful/utterances", talk, readers=3, begin_ns=BEGIN_NS)
        assert "take a picture" in watch.wait_for("the robot said nothing for 20.0 s")
        assert up.interrupt() == 0


def test_json_streams_what_a_robot_s_namespace_publishes(observer: Observer) -> None:
    with running("watch", "--json", "--namespace", "left") as watch:
        say(observer, "/left/tactful/utterances", TALK, readers=1, begin_ns=BEGIN_NS)
        line = json.loads(watch.wait_for("utterance"))
        watch.wait_for("counter")
        first = json.loads(watch.lines[0])
        assert first["topic"] == "/left/tactful/utterances"
        assert (first["kind"], first["stamp_ns"]) == ("utterance", 1_001 * 10**9)
        assert first["record"]["text"] == HOSTILE
        assert line["arrival_ns"] >= first["arrival_ns"]
        assert all(text.isascii() and text.isprintable() for text in watch.lines)
        assert watch.interrupt() == 0


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_full_disk_is_told_in_one_line(observer: Observer, options: tuple[str, ...]) -> None:
    command = [*TACTFUL, "watch", *options]
    with (
        Path("/dev/full").open("w", encoding="utf-8") as full,
        subprocess.Popen(command, stdout=full, stderr=subprocess.PIPE, text=True) as watch,
    ):
        say(observer, "/tactful/utterances", TALK, readers=1, begin_ns=BEGIN_NS)
        told = watch.communicate(timeout=PATIENCE_S)[1]
    # A slow machine may tell first that nothing is published yet.
    lines = [line for line in told.splitlines() if "nothing is published" not in line]
    assert len(lines) == 1
    assert "watch: standard output: cannot be written: No space left on device; make room" in lines[0]
