"""`tactful flags` on bags that another program wrote."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conversation_bag import START_NS, Said, robot, user, write_talk
from tests.command_line import tactful
from tests.norm_core.bags.bag_files import write_rosbags

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
