"""`tactful flags` over one bag and over many that another program wrote: notes, tables, and interruption."""

import csv
import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from norm_core.models.reader_folder import ReaderSize, find_reader_folder, read_manifest
from tactful_cli import flag_cluster, flag_watch
from tests.acceptance.conversation_bag import START_NS, Said, robot, user, write_talk
from tests.command_line import TACTFUL, tactful
from tests.norm_core.bags.bag_files import write_rosbags
from tests.patience import PATIENCE_S, comes_true

LECTURE = "The museum was built by two brothers who loved old clocks and collected them all their lives."


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return tactful("flags", *arguments)


def printed(bag: Path, *options: str) -> str:
    result = run(bag, *options)
    assert result.returncode == 0, result.stderr
    return result.stdout


def flags(bag: Path, *options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(printed(bag, "--json", *options))
    return found


def test_a_stop_that_the_robot_ignores_is_a_severe_error(tmp_path: Path) -> None:
    talk: list[Said] = [robot(1, 10, LECTURE), user(4, 5, "Stop, please.")]
    found = [one for one in flags(write_talk(tmp_path / "bag", talk, 20)) if one["polarity"] == "error"]
    assert [(one["onset_ns"] - START_NS, one["severity"]) for one in found] == [(10**9, "severe")]


@pytest.mark.skipif(not read_manifest(find_reader_folder(ReaderSize.SMALL)), reason="the reader is not set up here")
def test_as_set_up_a_robot_without_a_camera_is_told_what_goes_plainly_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A silence after a question, another question's answer, and talking over somebody."""
    monkeypatch.setenv("TACTFUL_READER", "small")
    talk = [
        user(1, 4, "Hello, is there somewhere we can park overnight?"),
        robot(13, 17, "Yes. The garage is under the building."),
        user(18, 21, "Thanks. And do you have a kids' menu?"),
        robot(22, 25, "The washrooms are down the hall on the right."),
        user(26, 29, "No, a kids' menu. For the children."),
        robot(30, 34, "Sorry, I got that wrong. Yes, it is on the last page of the menu."),
        user(35, 41, "Good. We have two boys, and the little one doesn't eat anything that has"),
        robot(38, 41.5, "Dinner is served from six to nine."),
        user(42, 44, "I wasn't finished."),
    ]
    errors = [flag for flag in flags(write_talk(tmp_path / "bag", talk, 50)) if flag["polarity"] == "error"]
    assert [(flag["onset_ns"] - START_NS) // 10**9 for flag in errors] == [4, 22, 38]


def told(flag: dict[str, Any]) -> tuple[Any, ...]:
    """What is flagged. How sure it is depends on what follows, which a bag that ends does not hold."""
    return flag["event_id"], flag["polarity"], flag["onset_ns"], flag["cue_id"], flag["attributes"][0]


@pytest.mark.parametrize("marked", [True, False])
def test_a_bag_that_ends_after_the_last_turn_has_it_read(tmp_path: Path, marked: bool) -> None:
    talk = [
        user(3, 6, "I'd like a coffee, please."),
        robot(7, 11, "Your blood test from Monday is positive, by the way."),
    ]
    short = flags(write_talk(tmp_path / "short", talk, 11.5, marked=marked))
    long = flags(write_talk(tmp_path / "long", talk, 71))
    assert [flag["onset_ns"] for flag in long if flag["polarity"] == "error"] == [START_NS + 7 * 10**9]
    assert list(map(told, short)) == list(map(told, long))


@pytest.mark.parametrize(
    "last",
    [
        user(3, 5, "Where can I buy a ticket?"),
        user(3, 4, "Goodbye!"),
        user(3, 5, "I'll be right back."),
    ],
)
def test_the_end_of_a_bag_is_no_silence_of_the_robot(tmp_path: Path, last: Said) -> None:
    bag = write_talk(tmp_path / "bag", [robot(0.5, 2, "The museum opens at nine."), last], last[2] + 0.5)
    assert not [flag["rationale"] for flag in flags(bag) if flag["onset_ns"] >= START_NS + 3 * 10**9]


def test_times_are_told_from_the_first_word_where_the_bag_has_it_later(tmp_path: Path) -> None:
    """A recorder has an utterance once it is over: the bag's first message is at 6 s, its first word at 3 s."""
    talk = [user(3, 6, "Where can I buy a ticket?"), robot(12, 14, "You can buy it at the counter.")]
    shown = printed(write_talk(tmp_path / "bag", talk, 15, marked=False))
    assert shown.splitlines()[0].split()[0] == "3.0-9.0"


def test_a_bag_with_nothing_to_watch_is_refused(tmp_path: Path) -> None:
    bag = write_rosbags(tmp_path / "bag")
    refused = run(bag)
    assert refused.returncode == 2
    assert "holds nothing to watch" in refused.stderr


SLOW: list[Said] = [
    user(1, 3, "Where can I buy a ticket?"),
    robot(3.5, 6, "You can buy it at the counter."),
    user(8, 10, "And where is the toilet?"),
    robot(18, 20, "It is upstairs on the left."),
    user(22, 24, "Thank you, goodbye."),
    robot(24.5, 26, "Goodbye, enjoy your visit."),
]
SLOW_AT_FIRST: list[Said] = [
    user(1, 3, "Where can I buy a ticket?"),
    robot(13, 15, "You can buy it at the counter."),
    user(17, 19, "And where is the toilet?"),
    robot(19.5, 21.5, "It is upstairs on the left."),
    user(23, 25, "Thank you, goodbye."),
    robot(25.5, 27, "Goodbye, enjoy your visit."),
]

# Late answers alone are too unsure for the default.
KEEN = ("--sensitivity", "keen")


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three bags, one of them deeper than the others."""
    folder = tmp_path_factory.mktemp("bags")
    write_talk(folder / "session_2", SLOW, 30)
    write_talk(folder / "session_10", SLOW_AT_FIRST, 30)
    (folder / "pilot").mkdir()
    write_talk(folder / "pilot" / "talk", SLOW[:2], 10)
    return folder


def results(*arguments: object) -> list[dict[str, Any]]:
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.DictReader(lines))


def test_each_of_many_bags_has_the_flags_it_has_alone(bags: Path, tmp_path: Path) -> None:
    found = results(bags, "--out", tmp_path / "run", *KEEN)
    assert [one["bag"] for one in found] == ["pilot/talk", "session_2", "session_10"]
    assert found[1]["flags"] == flags(bags / "session_2", *KEEN)
    listed = rows(tmp_path / "run" / "flags.csv")
    late = next(row for row in listed if row["session"] == "session_2" and row["polarity"] == "error")
    assert (float(late["start_s"]), late["severity"]) == (10.0, "major")
    assert {(row["session"], row["event_id"]) for row in listed} == {
        (one["bag"], flag["event_id"]) for one in found for flag in one["flags"]
    }
    counted = {row["bag"]: int(row["errors"]) for row in rows(tmp_path / "run" / "bags.csv")}
    assert counted["session_2"] == sum(flag["polarity"] == "error" for flag in found[1]["flags"])


def test_the_turn_after_which_a_person_repeats_the_request_stands_out(tmp_path: Path) -> None:
    talk: list[Said] = [
        user(1, 3, "Can you bring me a glass of water?"),
        robot(4, 5, "Here is your water."),
        user(7, 8, "Great, thanks."),
        user(20, 22, "Please drive to the red door."),
        robot(23, 25, "I am at the blue door now."),
        user(27, 29, "No, please drive to the red door."),
        robot(30, 32, "I am at the red door now."),
        user(34, 36, "Good. What time is it?"),
        robot(37, 38, "It is ten past three."),
    ]
    printed(write_talk(tmp_path / "bag", talk, 60), "--out", str(tmp_path / "run"))
    turns = {row["text"]: row for row in rows(tmp_path / "run" / "turns.csv")}
    rejections = {text: float(row["rejection"]) for text, row in turns.items() if row["rejection"]}
    assert turns.keys() - rejections.keys() == {"It is ten past three."}  # nobody spoke after it
    rejected = rejections.pop("I am at the blue door now.")
    assert rejected > 0.7
    assert max(rejections.values()) < 0.2
    row = turns["I am at the blue door now."]
    assert float(row["rejection_at_once"]) < 0.5  # nobody had objected yet
    assert (row["start_s"], row["next_words"]) == ("23.000000000", "No, please drive to the red door.")
    assert "share of the person's next words that were said before" in row["reasons"]


def test_a_damaged_bag_does_not_keep_the_others_from_being_run(bags: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(bags / "session_2", damaged)
    storage = next(damaged.glob("*.mcap"))
    storage.write_bytes(storage.read_bytes()[:3000])
    done = run(damaged, bags / "pilot" / "talk", "--summary")
    assert done.returncode == 1
    assert "damaged: not run" in done.stderr
    assert "all 2" in done.stdout
    assert "1 bag not run" in done.stdout


def test_an_interrupted_run_goes_on_where_it_was(bags: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_bag = flag_watch.run_bag

    def interrupted(options: flag_watch.FlagOptions, name: str, *arguments: Any, **others: Any) -> flag_watch.BagRun:
        result = run_bag(options, name, *arguments, **others)
        if name == "session_2":  # as Ctrl-C, while the second bag runs: after it a fast machine would be done
            signal.raise_signal(signal.SIGINT)
        return result

    with monkeypatch.context() as patch:
        patch.setattr(flag_watch, "run_bag", interrupted)
        done = run(bags, "--summary", "--out", tmp_path / "run")
    assert done.returncode == 130
    assert "1 of 3 bags are done; the same command goes on" in done.stderr
    assert len(rows(tmp_path / "run" / "bags.csv")) == 1
    found = results(bags, "--out", tmp_path / "run")
    assert found == results(bags)
    assert len((tmp_path / "run" / "raw.jsonl").read_text().splitlines()) == 3  # none was run twice


def test_a_limit_of_the_answer_flags_what_the_weights_leave(bags: Path) -> None:
    talk = bags / "session_2"  # an answer comes after 8 s
    assert [flag["polarity"] for flag in flags(talk)].count("error") == 0
    (late,) = (flag for flag in flags(talk, "--answer-within", "4") if flag["polarity"] == "error")
    assert "the robot said nothing for 8.0 s" in late["rationale"]
    assert run(bags, "--answer-within", "121").returncode == 2


def test_a_run_goes_on_only_with_its_own_settings(bags: Path, tmp_path: Path) -> None:
    results(bags / "pilot", "--out", tmp_path / "run")
    refused = run(bags, "--out", tmp_path / "run", "--sensitivity", "quiet")
    assert refused.returncode == 2
    assert "'balanced' and not 'quiet'" in refused.stderr


def test_ray_gives_the_flags_of_one_process_though_a_worker_is_killed(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="the extra ray is not installed")
    folder = tmp_path / "bags"
    folder.mkdir()
    for index in range(6):  # the last four are long enough that a worker is still busy with one
        shifts_s = range(0, 30 * (1 if index < 2 else 12), 30)
        talk = [
            (who, from_s + shift_s, to_s + shift_s, words) for shift_s in shifts_s for who, from_s, to_s, words in SLOW
        ]
        write_talk(folder / f"session_{index}", talk, shifts_s.stop)
    in_turn = run(folder, "--json", "--out", tmp_path / "in_turn", *KEEN)
    command = [*TACTFUL, "flags", str(folder), "--json", "--ray", "auto", "--out", str(tmp_path / "ray"), *KEEN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        stored = tmp_path / "ray/raw.jsonl"
        assert comes_true(lambda: stored.is_file() and len(stored.read_text().splitlines()) >= 2)
        os.kill(find_ray_worker(process.pid), signal.SIGKILL)
        output, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    assert output == in_turn.stdout
    for name in ("flags.csv", "turns.csv", "bags.csv"):
        assert (tmp_path / "ray" / name).read_bytes() == (tmp_path / "in_turn" / name).read_bytes()


def find_ray_worker(pid: int) -> int:
    """Return a process of Ray that runs the monitor, below this one."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    waiting = [pid]
    while waiting:
        pid = waiting.pop()
        if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::MapWorker"):
            return pid
        waiting += [child for child, parent in parents.items() if parent == pid]
    raise AssertionError("no worker runs")


def test_ray_is_named_with_its_remedy_where_it_is_missing(bags: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flag_cluster, "is_installed", lambda package: False)
    refused = run(bags, "--ray", "auto")
    assert refused.returncode == 3
    assert "the package ray is missing; run ./tactful setup ray" in refused.stderr
