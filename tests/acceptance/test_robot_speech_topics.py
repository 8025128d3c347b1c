"""A robot that has std_msgs alone: in a bag that another program wrote."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from norm_core.records.speech import RobotSpeech, SpeechEdge, Utterance
from norm_core.runtime.time import s_to_ns
from norm_monitor.session_log.study_folder import init_study
from tests.command_line import tactful
from tests.foreign_bag import Maker, write
from tests.norm_monitor.encounter_talk import at, user

TALK = [
    *user(3, 6, "My mother died last week, I am only here for her picture."),
    *user(11, 13, "No. Did you not hear what I said?"),
    *user(30, 32, "That is really annoying."),
    *user(34, 35, "I will go now."),
    *user(36, 37, "Goodbye."),
]
PEOPLE = [utterance for utterance in TALK if isinstance(utterance, Utterance)]
# With the seconds in which the robot starts and stops.
ROBOT = (
    (0.0, 2.0, "Hello, welcome to the museum."),
    (7.0, 10.0, "Great! Do you want to hear a joke about whales?"),
    (24.0, 27.0, "Here is the joke."),
)
FLAGGED = {"no_response", "cheerful_after_bad_news"}
MISSING = "nothing is heard of the robot"


def bag(path: Path, robot_topic: str, robot: list[tuple[int, Any]], make: Maker) -> Path:
    people = [(utterance.end_ns, "/people", make.of(utterance)) for utterance in PEOPLE]
    return write(path, make, [*people, *((stamp_ns, robot_topic, message) for stamp_ns, message in robot)])


@pytest.fixture(scope="module")
def edges_bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    make = Maker({})
    edges = [
        RobotSpeech(stamp_ns=at(second), speech_id=f"r{start_s}", state=state, text=text)
        for start_s, stop_s, text in ROBOT
        for state, second in ((SpeechEdge.START, start_s), (SpeechEdge.STOP, stop_s))
    ]
    return bag(
        tmp_path_factory.mktemp("edges") / "bag", "/edges", [(edge.stamp_ns, make.of(edge)) for edge in edges], make
    )


@pytest.fixture(scope="module")
def strings_bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    make = Maker({})
    words = [(at(start_s), make("std_msgs/msg/String", {"data": text})) for start_s, _, text in ROBOT]
    return bag(tmp_path_factory.mktemp("strings") / "bag", "/robot_says", words, make)


@pytest.fixture(scope="module")
def recognizer_bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A robot whose own recognizer gives people's words, half a second after they end."""
    make = Maker({})
    speech = [(at(start_s), "/robot_says", make("std_msgs/msg/String", {"data": text})) for start_s, _, text in ROBOT]
    heard = [
        (utterance.end_ns + s_to_ns(0.5), "/texts", make("std_msgs/msg/String", {"data": utterance.text}))
        for utterance in PEOPLE
    ]
    voice = [
        (stamp_ns, "/person_speaks", make("std_msgs/msg/Bool", {"data": speaks}))
        for utterance in PEOPLE
        for stamp_ns, speaks in ((utterance.start_ns, True), (utterance.end_ns, False))
    ]
    return write(tmp_path_factory.mktemp("recognizer") / "bag", make, [*speech, *heard, *voice])


Flags = subprocess.CompletedProcess[str]
RECOGNIZER = ("--words-topic", "/texts", "--words-topic", "/person_speaks")


@pytest.fixture(scope="module")
def voiced_bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each text comes half a second before the Bool rises, which is stated ten times a second."""
    make = Maker({})
    words = [(at(start_s) - s_to_ns(0.5), make("std_msgs/msg/String", {"data": text})) for start_s, _, text in ROBOT]
    states = [
        (at(tenth / 10), any(start_s <= tenth / 10 < stop_s for start_s, stop_s, _ in ROBOT))
        for tenth in range(-9, 600)
    ]
    voice = [(stamp_ns, "/robot_speaks", make("std_msgs/msg/Bool", {"data": state})) for stamp_ns, state in states]
    people = [(utterance.end_ns, "/people", make.of(utterance)) for utterance in PEOPLE]
    speech = [(stamp_ns, "/robot_says", message) for stamp_ns, message in words]
    return write(tmp_path_factory.mktemp("voiced") / "bag", make, [*people, *speech, *voice])


def flags(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return tactful("flags", *arguments, "--sensitivity", "keen", "--json")


def found(result: subprocess.CompletedProcess[str]) -> set[tuple[str, str, int]]:
    assert result.returncode == 0, result.stderr
    return {(flag["cue_id"], flag["polarity"], flag["onset_ns"]) for flag in json.loads(result.stdout)}


@pytest.fixture(scope="module")
def by_strings(strings_bag: Path) -> Flags:
    return flags(strings_bag, "--robot-topic", "/robot_says")


def test_flags_come_of_strings_as_of_robot_speech(by_strings: Flags, edges_bag: Path) -> None:
    by_edges = flags(edges_bag, "--robot-topic", "/edges")
    assert {cue_id for cue_id, _, _ in found(by_strings)} >= FLAGGED
    assert found(by_strings) == found(by_edges) == found(flags(edges_bag))
    assert MISSING not in by_strings.stderr + by_edges.stderr


def test_a_string_and_a_bool_give_the_flags_of_robot_speech(voiced_bag: Path, by_strings: Flags) -> None:
    voiced = flags(voiced_bag, "--robot-topic", "/robot_says", "--robot-topic", "/robot_speaks")
    assert found(voiced) == found(by_strings)


def test_an_offset_moves_robot_speech(strings_bag: Path, by_strings: Flags) -> None:
    onsets_ns = {cue_id: onset_ns for cue_id, _, onset_ns in found(by_strings)}
    moved = found(flags(strings_bag, "--robot-topic", "/robot_says", "--robot-offset-ms", "200"))
    assert 200_000_000 in {onset_ns - onsets_ns.get(cue_id, onset_ns) for cue_id, _, onset_ns in moved}


def test_a_recognizers_texts_give_the_flags_of_utterances(recognizer_bag: Path, by_strings: Flags) -> None:
    by_texts = flags(recognizer_bag, "--robot-topic", "/robot_says", *RECOGNIZER)
    assert found(by_texts) == found(by_strings)
    assert "people's words" not in by_texts.stderr


def test_a_bag_without_peoples_words_names_the_topics_that_may_hold_them(recognizer_bag: Path) -> None:
    output = flags(recognizer_bag, "--robot-topic", "/robot_says")
    assert "people's words: there are none in this bag" in output.stderr
    assert "name the topic of the robot's recognizer with --words-topic (as /texts)" in " ".join(output.stderr.split())


def test_a_study_log_and_hear_read_a_recognizers_texts(recognizer_bag: Path, tmp_path: Path) -> None:
    study = init_study(tmp_path / "s", "s").folder
    assert tactful("study", "add", study, recognizer_bag, "--session", "S1", *RECOGNIZER).returncode == 0
    assert PEOPLE[0].text in (study / "sessions/S1/events-000001.jsonl").read_text(encoding="utf-8")
    heard = json.loads(tactful("hear", recognizer_bag, "--json", *RECOGNIZER).stdout)
    assert [(utterance["speaker"], utterance["text"]) for utterance in heard] == [
        ("user", utterance.text) for utterance in PEOPLE
    ]


def test_silence_is_not_flagged_of_a_robot_that_is_not_heard(tmp_path: Path) -> None:
    make = Maker({})
    questions = [*TALK, *user(60, 62, "Where is the exit?"), *user(90, 91, "Goodbye.")]
    speech = [(entry.end_ns, "/people", make.of(entry)) for entry in questions if isinstance(entry, Utterance)]
    silent = write(tmp_path / "bag", make, speech)
    assert [onset_ns for _, _, onset_ns in found(flags(silent)) if onset_ns > PEOPLE[-1].start_ns] == []


def test_a_bag_without_a_robot_topic_says_so(strings_bag: Path) -> None:
    result = flags(strings_bag)
    assert not FLAGGED & {cue_id for cue_id, _, _ in found(result)}
    assert MISSING in result.stderr
    assert "name its speech topic with --robot-topic (as /robot_says)" in " ".join(result.stderr.split())
