"""A robot that has std_msgs alone: in a bag that another program wrote, and live."""

import json
import subprocess
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.typesys import get_types_from_msg

from norm_core.records.flag import SocialFlag
from norm_core.records.messages import from_message
from norm_core.records.speech import RobotSpeech, SpeechEdge, Utterance, silence_mark
from norm_core.records.status import Health, MonitorStatus
from norm_core.runtime.time import s_to_ns
from sim_replays.drivers.node_process import NodeProcess
from study_desk.study.study_folder import init_study
from tests.command_line import tactful
from tests.foreign_bag import Maker, write
from tests.norm_monitor.encounter_talk import at, user
from tests.observer import Observer

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
def recognizer_bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A robot whose own recognizer gives people's words, half a second after they end."""
    make = Maker({})
    said = [(at(start_s), "/robot_says", make("std_msgs/msg/String", {"data": text})) for start_s, _, text in ROBOT]
    heard = [(one.end_ns + s_to_ns(0.5), "/texts", make("std_msgs/msg/String", {"data": one.text})) for one in PEOPLE]
    voice = [
        (stamp_ns, "/person_speaks", make("std_msgs/msg/Bool", {"data": speaks}))
        for one in PEOPLE
        for stamp_ns, speaks in ((one.start_ns, True), (one.end_ns, False))
    ]
    return write(tmp_path_factory.mktemp("recognizer") / "bag", make, [*said, *heard, *voice])


RECOGNISER = ("--words-topic", "/texts", "--words-topic", "/person_speaks")


@pytest.fixture(scope="module")
def lights_bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    make = Maker({})
    lights = [(at(1), make("std_msgs/msg/Int32", {"data": 7}))]
    return bag(tmp_path_factory.mktemp("lights") / "bag", "/lights", lights, make)


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
    people = [(one.end_ns, "/people", make.of(one)) for one in PEOPLE]
    said = [(stamp_ns, "/robot_says", message) for stamp_ns, message in words]
    return write(tmp_path_factory.mktemp("voiced") / "bag", make, [*people, *said, *voice])


def flags(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return tactful("flags", *arguments, "--sensitivity", "keen", "--json")


def found(result: subprocess.CompletedProcess[str]) -> set[tuple[str, str, int]]:
    assert result.returncode == 0, result.stderr
    return {(flag["cue_id"], flag["polarity"], flag["onset_ns"]) for flag in json.loads(result.stdout)}


def test_flags_come_of_strings_as_of_robot_speech(strings_bag: Path, edges_bag: Path) -> None:
    by_strings = flags(strings_bag, "--robot-topic", "/robot_says")
    by_edges = flags(edges_bag, "--robot-topic", "/edges")
    assert {cue_id for cue_id, _, _ in found(by_strings)} >= FLAGGED
    assert found(by_strings) == found(by_edges) == found(flags(edges_bag))
    assert MISSING not in by_strings.stderr + by_edges.stderr


def test_a_string_and_a_bool_give_the_flags_of_robot_speech(voiced_bag: Path, edges_bag: Path) -> None:
    voiced = flags(voiced_bag, "--robot-topic", "/robot_says", "--robot-topic", "/robot_speaks")
    assert found(voiced) == found(flags(edges_bag))


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


@pytest.fixture(scope="module")
def action_bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The states of an action's goals, and its feedback word by word, as TTS servers publish them."""
    make = Maker({})
    feedback = "tts_msgs/msg/TTS_FeedbackMessage"  # the library cannot write the name with action in it
    make.store.register(
        get_types_from_msg("string word", "tts_msgs/msg/TTS_Feedback")
        | get_types_from_msg("unique_identifier_msgs/UUID goal_id\ntts_msgs/TTS_Feedback feedback", feedback)
    )
    messages: list[tuple[int, str, Any]] = [(one.end_ns, "/people", make.of(one)) for one in PEOPLE]
    for goal, (start_s, stop_s, text) in enumerate(ROBOT):
        uuid = make("unique_identifier_msgs/msg/UUID", {"uuid": np.full(16, goal, np.uint8)})
        info = {"goal_id": uuid, "stamp": make.header(at(start_s)).stamp}
        for second, state in ((start_s, 2), (stop_s, 4)):  # it runs, then it succeeded
            goal_info = make("action_msgs/msg/GoalInfo", info)
            status = make("action_msgs/msg/GoalStatus", {"goal_info": goal_info, "status": state})
            listed = make("action_msgs/msg/GoalStatusArray", {"status_list": [status]})
            messages.append((at(second), "/say/_action/status", listed))
        for index, word in enumerate(text.split(), start=1):
            told = {"goal_id": uuid, "feedback": make("tts_msgs/msg/TTS_Feedback", {"word": word})}
            messages.append((at(start_s + index / 10), "/say/_action/feedback", make(feedback, told)))
    return write(tmp_path_factory.mktemp("action") / "bag", make, messages)


def test_an_action_gives_the_flags_of_robot_speech(action_bag: Path, edges_bag: Path) -> None:
    acted = flags(action_bag, "--robot-topic", "/say")
    assert {cue_id for cue_id, _, _ in found(acted)} >= FLAGGED
    assert found(acted) == found(flags(edges_bag))


def test_a_study_log_reads_the_same_robot_topic(strings_bag: Path, tmp_path: Path) -> None:
    study = init_study(tmp_path / "s", "s").folder
    done = [
        tactful("study", "add", study, strings_bag, "--session", name, *named)
        for name, named in (("deaf", ()), ("hearing", ("--robot-topic", "/robot_says")))
    ]
    assert [MISSING in one.stderr for one in done] == [True, False]
    entries = (tmp_path / "s/sessions/hearing/events-000001.jsonl").read_text(encoding="utf-8")
    assert ROBOT[1][2] in entries


def test_a_recognizers_texts_give_the_flags_of_utterances(recognizer_bag: Path, strings_bag: Path) -> None:
    by_texts = flags(recognizer_bag, "--robot-topic", "/robot_says", *RECOGNISER)
    assert found(by_texts) == found(flags(strings_bag, "--robot-topic", "/robot_says"))
    assert "people's words" not in by_texts.stderr


def test_a_bag_without_peoples_words_names_the_topics_that_may_hold_them(recognizer_bag: Path) -> None:
    told = flags(recognizer_bag, "--robot-topic", "/robot_says")
    assert "people's words: there are none in this bag" in told.stderr
    assert "name the topic of the robot's recognizer with --words-topic (as /texts)" in " ".join(told.stderr.split())


@pytest.mark.parametrize(
    ("named", "complaint"),
    [
        (("--words-topic", "/nowhere"), "has no topic /nowhere"),
        (("--words-topic", "/person_speaks"), "name one topic of texts"),
        ((*RECOGNISER, "--words-topic", "/robot_says"), "name one topic of texts"),
    ],
)
def test_words_topics_that_cannot_be_read_are_refused(
    recognizer_bag: Path, named: tuple[str, ...], complaint: str
) -> None:
    refused = flags(recognizer_bag, *named)
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)
    assert complaint in " ".join(refused.stderr.split())


def test_a_study_log_and_hear_read_a_recognizers_texts(recognizer_bag: Path, tmp_path: Path) -> None:
    study = init_study(tmp_path / "s", "s").folder
    assert tactful("study", "add", study, recognizer_bag, "--session", "S1", *RECOGNISER).returncode == 0
    assert PEOPLE[0].text in (study / "sessions/S1/events-000001.jsonl").read_text(encoding="utf-8")
    heard = json.loads(tactful("hear", recognizer_bag, "--json", *RECOGNISER).stdout)
    assert [(one["speaker"], one["text"]) for one in heard] == [("user", one.text) for one in PEOPLE]


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
    assert "name its speech topic with --robot-topic (as /robot_says)" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("topic", "complaint"),
    [("/nowhere", "has no topic /nowhere"), ("/lights", "has none of the fields of a robot's speech")],
)
def test_a_topic_that_tells_nothing_of_the_robot_is_named(lights_bag: Path, topic: str, complaint: str) -> None:
    result = flags(lights_bag, "--robot-topic", topic)
    assert complaint in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


class LiveRobot:
    """A robot with publishers of std_msgs alone, people who talk to it, and the flags that come of it."""

    def __init__(self, observer: Observer) -> None:
        from norm_nodes.convert import record_class
        from norm_nodes.endpoint import EVENTS

        self._observer = observer
        self.people = observer.node.create_publisher(record_class(Utterance), "/tactful/utterances", EVENTS)
        self._flags = observer.collect(record_class(SocialFlag), "/tactful/flags", EVENTS)
        self._edges = observer.collect(record_class(RobotSpeech), "/tactful/robot_speech", EVENTS)
        self._statuses = observer.watch_status()
        self._taken: Any = None

    def meet(self) -> None:
        self._observer.until(self.people.get_subscription_count, "the monitor to listen")
        self._observer.meet("ears")
        self._observer.meet("monitor")
        self._taken = self._observer.counts_of("monitor")

    def taken(self, topic: str, number: int) -> bool:
        """Whether the monitor took so many messages."""
        return bool(self._taken()[topic] == number)

    def publisher(self, type_: Any, topic: str) -> Any:
        """A publisher of the robot's, once ears have found it."""
        made = self._observer.node.create_publisher(type_, topic, 10)
        self._observer.until(made.get_subscription_count, f"ears to find {topic}")
        return made

    def hears(self, one: Utterance, start_ns: int) -> None:
        from norm_nodes.convert import to_ros

        end_ns = start_ns + one.end_ns - one.start_ns
        moved = replace(one, utterance_id=f"u{start_ns}", stamp_ns=start_ns, start_ns=start_ns, end_ns=end_ns)
        self.people.publish(to_ros(moved))

    def hears_nothing_until(self, stamp_ns: int) -> None:
        from norm_nodes.convert import to_ros

        self.people.publish(to_ros(silence_mark(stamp_ns, "people")))

    @property
    def edges(self) -> list[RobotSpeech]:
        return [from_message(RobotSpeech, message) for message in self._edges]

    def flagged(self) -> set[str]:
        return {from_message(SocialFlag, message).cue_id for message in self._flags}

    def status(self, node: str) -> MonitorStatus | None:
        return next((one for one in reversed(self._statuses) if one.node == f"/tactful/{node}"), None)

    def is_missed(self) -> bool:
        """Whether the monitor says that it hears nothing of the robot."""
        status = self.status("monitor")
        return status is not None and any(MISSING in reason for reason in status.reasons)


@pytest.mark.ros
def test_a_live_monitor_misses_the_robot_until_its_topic_appears(domain_id: int, observer: Observer) -> None:
    from std_msgs.msg import String

    robot = LiveRobot(observer)
    parameters: dict[str, dict[str, Any]] = {
        "monitor": {"windows": {"sources": ["utterances"]}, "fusion": {"bars": ["error=0.3"]}},
        "ears": {"robot_speech_topic": "/robot_says"},
    }
    with NodeProcess(["ears", "monitor"], parameters, domain_id):
        robot.meet()
        now_ns = time.time_ns()
        for number, one in enumerate(PEOPLE, start=1):
            assert not robot.is_missed()
            robot.hears(one, now_ns - at(60) + one.start_ns)
            observer.until(partial(robot.taken, "/tactful/utterances", number), "the monitor to take it")
        observer.until(robot.is_missed, "the monitor to miss the robot")
        degraded = robot.status("monitor")
        assert degraded
        assert degraded.health is Health.DEGRADED
        assert "name its speech topic with the parameter robot_speech_topic" in " ".join(degraded.reasons)
        words = robot.publisher(String, "/robot_says")
        robot.hears(PEOPLE[0], time.time_ns() - s_to_ns(4))
        observer.until(lambda: robot.taken("/tactful/utterances", len(PEOPLE) + 1), "the monitor to take it")
        words.publish(String(data=ROBOT[1][2]))
        observer.until(lambda: len(robot.edges) == 2 and robot.taken("/tactful/robot_speech", 2), "both edges")
        robot.hears_nothing_until(robot.edges[-1].stamp_ns + s_to_ns(30))
        observer.until(lambda: "cheerful_after_bad_news" in robot.flagged(), "the flag")
        observer.until(lambda: not robot.is_missed(), "the monitor to be well again")
