"""`tactful bench monitor --bag`: a site's own recordings, by the topics that `flags` takes."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from norm_core.runtime.time import s_to_ns
from tests.command_line import tactful
from tests.foreign_bag import Maker, write

START_S = 1_000
TEXTS = [
    ("/robot_says", 0, 2, "Hello, welcome to the museum."),
    ("/texts", 3, 6, "My mother died last week, I am only here for her picture."),
    ("/robot_says", 7, 10, "Great! Do you want to hear a joke about whales?"),
    ("/texts", 11, 13, "No. Did you not hear what I said?"),
    ("/robot_says", 24, 27, "Here is the joke."),
    ("/texts", 30, 32, "That is really annoying."),
]
TOPICS = ("--words-topic", "/texts", "--words-topic", "/person_speaks", "--robot-topic", "/robot_says")
LABELS = "class,onset_s,offset_s\nrm,7,10\n"


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A robot that talks on, with people's words by its own recognizer, which says when they speak."""
    return talk(tmp_path_factory.mktemp("talk") / "bag", TEXTS)


def talk(path: Path, texts: Sequence[tuple[str, float, float, str]]) -> Path:
    make = Maker({})
    messages: list[tuple[int, str, Any]] = []
    for topic, start_s, end_s, text in texts:
        told_s = start_s if topic == "/robot_says" else end_s
        messages.append((at(told_s), topic, make("std_msgs/msg/String", {"data": text})))
    for second in range(40):
        speaks = any(topic == "/texts" and start_s <= second < end_s for topic, start_s, end_s, _ in texts)
        messages.append((at(second), "/person_speaks", make("std_msgs/msg/Bool", {"data": speaks})))
    return write(path, make, messages)


def at(second: float) -> int:
    return s_to_ns(START_S + second)


def bench(bag: Path, folder: Path, labels: str, *options: str) -> subprocess.CompletedProcess[str]:
    file = folder / "labels.csv"
    file.write_text(labels, encoding="utf-8")
    return tactful("bench", "monitor", "--bag", bag, "--labels", file, *options, "--json")


def test_words_of_the_robots_own_recognizer_are_scored(bag: Path, tmp_path: Path) -> None:
    result = bench(bag, tmp_path, LABELS, *TOPICS)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    flags = [one for one in json.loads(tactful("flags", bag, *TOPICS, "--json").stdout) if one["polarity"] == "error"]
    online = found["monitor"]["online"]
    assert online["f1_interval"] is None
    assert (online["events"], online["flags"], online["recall"]) == (1, len(flags), 100.0)
    renamed = ("--map", "/texts=/heard", "--words-topic", "/heard", *TOPICS[2:])
    by_other_names = json.loads(bench(bag, tmp_path, LABELS, *renamed).stdout)
    assert by_other_names["monitor"]["by_class"] == found["monitor"]["by_class"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            TOPICS[4:],
            "people's words: there are none in this bag; name the topic of the robot's recognizer with --words",
        ),
        (("--words-topic", "/nowhere"), "has no topic /nowhere"),
        (("--map", "/nowhere=/texts", *TOPICS), "has no topic /nowhere, which --map renames"),
    ],
)
def test_a_bag_whose_words_are_not_read_gets_no_recall(
    bag: Path, tmp_path: Path, options: tuple[str, ...], complaint: str
) -> None:
    result = bench(bag, tmp_path, LABELS, *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert complaint in " ".join(result.stderr.split())


def test_a_bag_without_a_recognized_word_or_a_label_gets_no_recall(bag: Path, tmp_path: Path) -> None:
    silent = talk(tmp_path / "silent", [*TEXTS[:1], ("/texts", 4, 5, " ")])
    refused = bench(silent, tmp_path, LABELS, *TOPICS)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "silent: no word of a person was recognized; check" in " ".join(refused.stderr.split())
    refused = bench(bag, tmp_path, LABELS.splitlines()[0], *TOPICS)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "bag: no label lies in any bag; label one" in " ".join(refused.stderr.split())
