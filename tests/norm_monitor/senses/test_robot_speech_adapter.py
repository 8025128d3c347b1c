"""What robots' own topics tell of their speech, one type or several together."""

from types import SimpleNamespace as Fields
from typing import Any

import pytest

from norm_core.health.health_log import HealthLog
from norm_core.records.speech import RobotSpeech, SpeechEdge
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.context.spoken_words import estimate_duration_ns
from norm_monitor.context.turns import Turn, turns_of
from norm_monitor.senses.robot_voice.robot_messages import NotRobotSpeechError
from norm_monitor.senses.robot_voice.robot_speech_adapter import RobotSpeechAdapter

AT_NS = 1_000 * NS_PER_S
HEADER = Fields(stamp=Fields(sec=1_000, nanosec=0), frame_id="")
LONG = "Let me tell you all about the history of this library"
RUNS, SUCCEEDED = 2, 4  # action_msgs/GoalStatus


def goal_id(goal: int) -> Fields:
    return Fields(uuid=bytes([goal] * 16))


def status(*goals: tuple[int, int]) -> Fields:
    """An action's GoalStatusArray, of goals and their states."""
    return Fields(status_list=[Fields(goal_info=Fields(goal_id=goal_id(goal)), status=state) for goal, state in goals])


def word(text: str, goal: int = 1) -> Fields:
    return Fields(goal_id=goal_id(goal), feedback=Fields(word=text))


class Robot:
    """A robot's topics, merged."""

    def __init__(self, *speaker_ids: str) -> None:
        self.health_log = HealthLog()
        self._adapter = RobotSpeechAdapter(self.health_log, speaker_ids)
        self.edges: list[RobotSpeech] = []

    def tells(self, second: float, message: Any, topic: str = "/said") -> "Robot":
        self.edges += self._adapter.feed(message, AT_NS + s_to_ns(second), topic)
        return self

    def says(self, second: float, text: str, topic: str = "/said") -> "Robot":
        return self.tells(second, Fields(data=text), topic)

    def speaks(self, second: float, speaking: bool) -> "Robot":
        return self.tells(second, Fields(data=speaking), "/is_speaking")

    def loses(self, second: float, topic: str) -> "Robot":
        self.edges += self._adapter.lose_topic(topic, AT_NS + s_to_ns(second))
        return self

    def turns(self, until_s: float = 1_000.0) -> list[tuple[float, float, str]]:
        """Where each turn starts and ends, and its text."""
        turns: tuple[Turn, ...] = turns_of((), self.edges, AT_NS + s_to_ns(until_s))
        return [((t.start_ns - AT_NS) / NS_PER_S, (t.end_ns - AT_NS) / NS_PER_S, t.text) for t in turns]

    def counted(self, name: str) -> int:
        return sum(counter.count for counter in self.health_log.counters if counter.name == name)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(Fields(data="Good morning"), id="std_msgs and naoqi String"),
        pytest.param(Fields(header=HEADER, speaker_id="robot", text="Good morning", locale="en_GB"), id="caption"),
        pytest.param(Fields(input="Good morning", locale="en_GB", voice=""), id="tts_msgs goal"),
        pytest.param(Fields(goal_id="", goal=Fields(input="Good morning", locale="")), id="goal of an action"),
        pytest.param(Fields(rawtext=Fields(text="Good morning", lang_id="en_GB")), id="pal_interaction"),
        pytest.param(Fields(text="Good morning", language="en"), id="audio_common goal"),
        pytest.param(Fields(say="Good morning"), id="naoqi_bridge goal"),
        pytest.param(Fields(sound=-3, command=1, arg="Good morning", arg2="", volume=1.0), id="sound_play"),
        pytest.param(
            Fields(sound_request=Fields(sound=-3, command=1, arg="Good morning", arg2="")), id="sound_play goal"
        ),
        pytest.param(
            Fields(info=Fields(event_type=0), request=[Fields(goal=Fields(input="Good morning"))], response=[]),
            id="service event of an action",
        ),
        pytest.param(Fields(data="<speak>Good <b>morning</b></speak>"), id="SSML"),
        pytest.param(Fields(data="\\rspd=80\\Good ^start(animations/Hey_1) morning"), id="NAOqi markup"),
    ],
)
def test_a_command_to_speak_becomes_a_start_and_an_estimated_stop(message: Fields) -> None:
    start, stop = Robot().tells(0, message).edges
    assert (start.state, start.stamp_ns, start.text) == (SpeechEdge.START, AT_NS, "Good morning")
    assert (stop.state, stop.stamp_ns) == (SpeechEdge.STOP, AT_NS + estimate_duration_ns("Good morning"))
    assert start.speech_id == stop.speech_id
    assert start.estimated
    assert stop.estimated


LONG_ENDS_S = estimate_duration_ns(LONG) / NS_PER_S


@pytest.mark.parametrize(
    ("told", "turns"),
    [
        ([(0, LONG), (1, "Hello")], [(0.0, 1.6, f"{LONG} Hello")]),  # a new command cuts the one before short
        ([(-5, False), (0, "Hi"), (0.4, True), (4.5, False)], [(0.4, 4.5, "Hi")]),
        ([(-5, False), (0, True), (1, "Hi"), (3, False)], [(0.0, 3.0, "Hi")]),
        ([(-5, False), (0, True), (3, False), (3.5, "Hi")], [(0.0, 3.0, "Hi")]),
        ([(-5, False), (0, LONG), (0.5, True), (1, "And now the joke"), (4, False), (6, True), (8, False)],
         [(0.5, 4.0, LONG), (6.0, 8.0, "And now the joke")]),  # a queued text waits for its own voice
        ([(0, LONG), (0, True), (40, "Hello"), (40, True), (42, False)],
         [(0.0, LONG_ENDS_S, LONG), (40.0, 42.0, "Hello")]),  # stated by its changes, it begins anew with new words
        ([(0, LONG), (0.5, True), (3, False)], [(0.0, 3.0, LONG)]),  # of a voice yet unknown
        ([(0, "Hi"), (0.5, True), (3, False)], [(0.0, 3.0, "Hi")]),
    ],
)  # fmt: skip
def test_a_voice_gives_the_times_and_a_text_the_words(
    told: list[tuple[float, str | bool]], turns: list[tuple[float, float, str]]
) -> None:
    robot = Robot()
    for second, what in told:
        robot.says(second, what) if isinstance(what, str) else robot.speaks(second, what)
    assert robot.turns() == turns
    assert told[0][1] is not False or not any(edge.estimated for edge in robot.edges)


def test_a_stop_of_sound_play_ends_what_is_said() -> None:
    robot = Robot().tells(0, Fields(sound=-3, command=1, arg=LONG, arg2=""))
    assert robot.tells(1, Fields(sound=-1, command=0, arg="", arg2="")).turns() == [(0.0, 1.0, LONG)]


def test_a_caption_of_another_speaker_is_ignored() -> None:
    caption = Fields(header=HEADER, speaker_id="ana", text="Hello", locale="en")
    assert Robot("robot").tells(0, caption).edges == []


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(Fields(angle=3), id="no field of speech"),
        pytest.param(Fields(header=HEADER, incremental="", final="hello", locale="en"), id="a person's LiveSpeech"),
        pytest.param(Fields(utterance_id="u1", speaker_id="ana", text="hello", locale="en"), id="an Utterance"),
    ],
)
def test_a_message_without_robot_speech_is_refused(message: Fields) -> None:
    with pytest.raises(NotRobotSpeechError):
        Robot().tells(0, message)


def test_the_same_text_on_two_topics_is_said_once() -> None:
    robot = Robot().says(0, LONG).says(0.1, LONG, "/captions")
    assert robot.turns() == Robot().says(0, LONG).turns()
    assert robot.counted("robot_texts_repeated") == 1


def test_a_text_without_a_voice_has_estimated_times_and_is_reported() -> None:
    robot = Robot().speaks(-5, False).says(0, "Good morning").speaks(12, False).says(20, "Hello")
    assert [text for _, _, text in robot.turns()] == ["Good morning", "Hello"]
    assert robot.counted("robot_texts_without_voice") == 1
    assert any("was not followed by the robot's voice" in reason for reason in robot.health_log.reasons)


def test_an_endless_voice_is_stopped_and_reported_until_it_ends() -> None:
    robot = Robot().speaks(0, True).speaks(59, True).speaks(61, True).says(70, "Hello")
    assert robot.turns() == [(0.0, 60.0, ""), (70.0, 70.6, "Hello")]
    assert any("is said to speak for over 60 s" in reason for reason in robot.health_log.reasons)
    robot.speaks(80, False)
    assert not robot.health_log.reasons
    assert robot.says(90, "Bye").speaks(90.5, True).speaks(92, False).turns()[-1] == (90.5, 92.0, "Bye")


@pytest.mark.parametrize(("second", "end_s"), [(2, 2.0), (30, LONG_ENDS_S)])
def test_a_voice_without_its_topic_ends_there_or_with_its_words(second: float, end_s: float) -> None:
    robot = Robot().speaks(0, True).says(0, LONG).loses(second, "/is_speaking")
    assert robot.turns() == [(0.0, end_s, LONG)]
    assert robot.counted("robot_voices_lost") == 1
    assert robot.says(40, "Hello").turns()[-1] == (40.0, 40.6, "Hello")  # texts wait for no voice


@pytest.mark.parametrize(("killed_s", "end_s"), [(2.0, 2.0), (12.0, LONG_ENDS_S)])
def test_a_regularly_stated_voice_ends_when_its_statements_stop(killed_s: float, end_s: float) -> None:
    """Its process was killed; stamps alone tell it, so that a bag gives the same as the graph did."""
    robot = Robot().says(0, LONG)
    for tenth in range(int(killed_s * 10) + 1):
        robot.speaks(tenth / 10, True)
    robot.speaks(40, False).says(45, "Hello").speaks(45.5, True).speaks(47, False)
    assert robot.turns() == [(0.0, end_s, LONG), (45.5, 47.0, "Hello")]
    assert robot.counted("robot_voices_lost") == 1


def test_an_action_that_vanishes_ends_its_speech() -> None:
    robot = Robot().tells(0, status((1, RUNS)), "/say/_action/status").loses(3, "/say/_action/status")
    assert robot.turns() == [(0.0, 3.0, "")]


def test_an_action_gives_times_and_its_feedback_the_words() -> None:
    robot = Robot().tells(0, status((1, RUNS)), "/say/_action/status")
    for second, text in ((0.5, "Good"), (1, "morning")):
        robot.tells(second, word(text), "/say/_action/feedback")
    robot.tells(2, status((1, SUCCEEDED)), "/say/_action/status")
    robot.tells(5, status((1, SUCCEEDED), (2, RUNS)), "/say/_action/status")
    robot.tells(7, status((1, SUCCEEDED), (2, SUCCEEDED)), "/say/_action/status")
    assert robot.turns() == [(0.0, 2.0, "Good morning"), (5.0, 7.0, "")]


def test_words_of_feedback_alone_end_after_the_last_one() -> None:
    robot = Robot().tells(0, word("Good"), "/feedback").tells(0.5, word("morning"), "/feedback")
    robot.tells(9, word("Bye", goal=2), "/feedback")
    assert robot.turns(9.5) == [(0.0, 1.1, "Good morning"), (9.0, 9.5, "")]
