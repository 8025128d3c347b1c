"""A robot whose words come as std_msgs/String: in a bag that another program wrote, and live."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from norm_core.records.flag import SocialFlag
from norm_core.records.messages import from_message
from norm_core.records.speech import RobotSpeech, SpeechEdge, Utterance, silence_mark
from norm_core.records.status import Health
from norm_core.runtime.time import s_to_ns
from sim_replays.drivers.node_process import NodeProcess
from tests.foreign_bag import Maker, write
from tests.norm_monitor.encounter_talk import at, user
from tests.observer import Observer
from tests.patience import PATIENCE_S

TALK = [
    *user(3, 6, "My mother died last week, I am only here for her picture."),
    *user(11, 13, "No. Did you not hear what I said?"),
    *user(30, 32, "That is really annoying."),
    *user(34, 35, "I will go now."),
    *user(36, 37, "Goodbye."),
]
PEOPLE = [one for one in TALK if isinstance(one, Utterance)]
# With the seconds in which the robot starts and stops.
ROBOT = (
    (0.0, 2.0, "Hello, welcome to the museum."),
    (7.0, 10.0, "Great! Do you want to hear a joke about whales?"),
    (24.0, 27.0, "Here is the joke."),
)
FLAGGED = {"no_response", "cheerful_after_bad_news"}
MISSING = "nothing is heard of the robot"


def bag(path: Path, robot_topic: str, robot: list[tuple[int, Any]], make: Maker) -> Path:
    people = [(one.end_ns, "/people", make.of(one)) for one in PEOPLE]
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
def lights_bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    make = Maker({})
    lights = [(at(1), make("std_msgs/msg/Int32", {"data": 7}))]
    return bag(tmp_path_factory.mktemp("lights") / "bag", "/lights", lights, make)


def flags(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tactful_cli", "flags", *map(str, arguments), "--sensitivity", "keen", "--json"]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def found(result: subprocess.CompletedProcess[str]) -> set[tuple[str, str, int]]:
    assert result.returncode == 0, result.stderr
    return {(flag["cue_id"], flag["polarity"], flag["onset_ns"]) for flag in json.loads(result.stdout)}


def test_flags_come_of_strings_as_of_robot_speech(strings_bag: Path, edges_bag: Path) -> None:
    by_strings = flags(strings_bag, "--robot-topic", "/robot_says")
    by_edges = flags(edges_bag, "--robot-topic", "/edges")
    assert {cue_id for cue_id, _, _ in found(by_strings)} >= FLAGGED
    assert found(by_strings) == found(by_edges) == found(flags(edges_bag))
    assert MISSING not in by_strings.stderr + by_edges.stderr


@pytest.mark.parametrize("rule", ["/robot_says=/ari_1/say/robot_says", "/=/ari_1/say/"])
def test_a_topic_can_be_read_by_another_name(strings_bag: Path, rule: str) -> None:
    mapped = flags(strings_bag, "--map", rule, "--robot-topic", "/ari_1/say/robot_says")
    assert found(mapped) == found(flags(strings_bag, "--robot-topic", "/robot_says"))


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        ("/robot_said=/say", "has no topic /robot_said"),
        ("/robot_says=/people", "/robot_says and /people would both be read as /people"),
        ("robot_says", "write FROM=TO"),
    ],
)
def test_a_name_that_cannot_be_given_is_refused(strings_bag: Path, rule: str, complaint: str) -> None:
    refused = flags(strings_bag, "--map", rule)
    assert refused.returncode == 2
    assert complaint in refused.stderr


def test_silence_is_not_flagged_of_a_robot_that_is_not_heard(tmp_path: Path) -> None:
    make = Maker({})
    questions = [*TALK, *user(60, 62, "Where is the exit?"), *user(90, 91, "Goodbye.")]
    said = [(one.end_ns, "/people", make.of(one)) for one in questions if isinstance(one, Utterance)]
    silent = write(tmp_path / "bag", make, said)
    assert [onset_ns for _, _, onset_ns in found(flags(silent)) if onset_ns > PEOPLE[-1].start_ns] == []


def test_a_bag_without_a_robot_topic_says_so(strings_bag: Path) -> None:
    result = flags(strings_bag)
    assert not FLAGGED & {cue_id for cue_id, _, _ in found(result)}
    assert MISSING in result.stderr
    assert "--robot-topic" in result.stderr


@pytest.mark.parametrize(
    ("topic", "complaint"),
    [("/nowhere", "has no topic /nowhere"), ("/lights", "has none of the fields of a robot's speech")],
)
def test_a_topic_that_tells_nothing_of_the_robot_is_named(lights_bag: Path, topic: str, complaint: str) -> None:
    result = flags(lights_bag, "--robot-topic", topic)
    assert complaint in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


@pytest.mark.ros
def test_a_live_monitor_misses_the_robot_until_ears_know_its_topic(domain_id: int, observer: Observer) -> None:
    from norm_nodes.convert import record_class, to_ros
    from norm_nodes.endpoint import EVENTS
    from std_msgs.msg import String

    people = observer.node.create_publisher(record_class(Utterance), "/tactful/utterances", EVENTS)
    words = observer.node.create_publisher(String, "/robot_says", 10)
    seen = observer.collect(record_class(SocialFlag), "/tactful/flags", EVENTS)
    edges = observer.collect(record_class(RobotSpeech), "/tactful/robot_speech", EVENTS)
    statuses = observer.watch_status()

    def monitor_says(*, missing: bool) -> bool:
        own = [status for status in statuses if status.node == "/tactful/monitor"]
        return bool(own) and any(MISSING in reason for reason in own[-1].reasons) is missing

    def say(one: Utterance, start_ns: int) -> None:
        end_ns = start_ns + one.end_ns - one.start_ns
        moved = replace(one, utterance_id=f"u{start_ns}", stamp_ns=start_ns, start_ns=start_ns, end_ns=end_ns)
        people.publish(to_ros(moved))

    def has_taken(number: int) -> bool:
        return taken()["/tactful/utterances"] == number

    parameters: dict[str, dict[str, Any]] = {
        "monitor": {"windows": {"sources": ["utterances"]}},
        "ears": {"robot_speech_topic": "/robot_says", "robot_speech_type": "std_msgs/msg/String"},
    }
    with NodeProcess(["ears", "monitor"], parameters, domain_id):
        observer.until(people.get_subscription_count, "the monitor to listen")
        observer.until(words.get_subscription_count, "ears to listen")
        observer.meet("ears")
        observer.meet("monitor")
        taken = observer.counts_of("monitor")
        now_ns = time.time_ns()
        for number, one in enumerate(PEOPLE, start=1):
            assert monitor_says(missing=False)
            say(one, now_ns - at(60) + one.start_ns)
            observer.until(partial(has_taken, number), "the monitor to take it")
        observer.until(lambda: monitor_says(missing=True), "the monitor to miss the robot")
        degraded = next(s for s in reversed(statuses) if s.node == "/tactful/monitor")
        assert degraded.health is Health.DEGRADED
        assert "robot_speech_topic" in " ".join(degraded.reasons)
        words.publish(String(data=ROBOT[0][2]))
        observer.until(lambda: len(edges) == 2 and taken()["/tactful/robot_speech"] == 2, "both edges")
        robot_ns = from_message(RobotSpeech, edges[0]).stamp_ns
        say(PEOPLE[0], robot_ns - at(ROBOT[0][0]) + PEOPLE[0].start_ns)
        people.publish(to_ros(silence_mark(robot_ns + s_to_ns(30), "people")))
        observer.until(lambda: "response_delay" in {from_message(SocialFlag, m).cue_id for m in seen}, "the flag")
        observer.until(lambda: monitor_says(missing=False), "the monitor to be well again")
