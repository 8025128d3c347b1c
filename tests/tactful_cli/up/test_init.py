"""The profile that `up --init` writes, by the topics that it finds and the answers that it gets."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from norm_monitor.judge.deployment_context import DeploymentContext
from tactful_cli.up.init import ask, profile_of, profile_text
from tactful_cli.up.ros_tools import Survey, Topic

STRING, BOOL = "std_msgs/msg/String", "std_msgs/msg/Bool"
HOME = DeploymentContext.HOME


def survey(**types: str) -> Survey:
    """A robot's topics; __ stands for a slash."""
    names = {f"/{name.replace('__', '/')}": type_name for name, type_name in types.items()}
    return Survey(topics=tuple(Topic(name=name, types=(names[name],), rate_hz=1.0) for name in names), actions={})


BOLT = survey(
    bolt__is_speaking=BOOL,
    bolt__person_speaking=BOOL,
    bolt__says=STRING,
    bolt__transcript=STRING,
    bolt__charging=BOOL,
    robot_description=STRING,
)


def defaults(question: str, choices: Sequence[str], default: int) -> int:
    return default


def ears_of(found: Survey) -> Mapping[str, Any]:
    return profile_of(ask(found, defaults, HOME), found)["ears"]


def test_a_robot_with_a_recognizer_of_strings_gets_all_its_parts() -> None:
    assert ears_of(BOLT) == {
        "words_from": "topic",
        "words_topic": "/bolt/transcript",
        "words_type": STRING,
        "is_speaking_topic": "/bolt/person_speaking",
        "robot_speech_topic": "/bolt/says",
        "robot_speech_type": STRING,
        "robot_speaking_topic": "/bolt/is_speaking",
    }


def test_a_string_or_bool_of_no_telling_name_plays_no_part_by_default() -> None:
    assert ears_of(survey(robot_description=STRING, charging=BOOL)) == {}


def test_any_string_can_be_chosen_as_peoples_words() -> None:
    def choose(question: str, choices: Sequence[str], default: int) -> int:
        return 0 if "people's words" in question else default

    found = survey(bolt__out=STRING)
    assert profile_of(ask(found, choose, HOME), found)["ears"]["words_topic"] == "/bolt/out"


def test_what_tactful_itself_publishes_is_no_part_of_a_robot() -> None:
    own = Topic(
        name="/tactful/robot_speech",
        types=("norm_interfaces/msg/RobotSpeech",),
        publishers=("/tactful/ears",),
        rate_hz=20.0,
    )
    says = survey(tts_saying="std_msgs/msg/String").topics
    assert ears_of(Survey(topics=(own, *says), actions={}))["robot_speech_topic"] == "/tts_saying"
    robots = replace(own, publishers=("/robot_brain",))
    assert ears_of(Survey(topics=(robots, *says), actions={}))["robot_speech_topic"] == "/tactful/robot_speech"


def test_a_live_speech_is_timed_by_the_bool_of_its_voice() -> None:
    found = survey(
        voices__a__is_speaking=BOOL, voices__b__is_speaking=BOOL, voices__b__speech="hri_msgs/msg/LiveSpeech"
    )
    assert ears_of(found)["is_speaking_topic"] == "/voices/b/is_speaking"


def test_robot_speech_that_times_itself_needs_no_bool() -> None:
    ears = ears_of(survey(speech="norm_interfaces/msg/RobotSpeech", robot_speaks=BOOL))
    assert ears == {"robot_speech_topic": "/speech", "robot_speech_type": "norm_interfaces/msg/RobotSpeech"}


def test_each_question_offers_at_most_one_way_to_choose_nothing() -> None:
    offered: list[Sequence[str]] = []

    def note(question: str, choices: Sequence[str], default: int) -> int:
        offered.append([choice for choice in choices if choice in {"none of them", "unspecified"}])
        return default

    ask(BOLT, note, None)
    assert [len(choices) for choices in offered] == [1] * 5


def test_topics_that_play_no_part_are_listed_in_the_file() -> None:
    answers = ask(BOLT, defaults, HOME)
    text = profile_text(profile_of(answers, BOLT), answers, BOLT)
    listed = text.partition("# Not used:")[2]
    assert "# /robot_description: std_msgs/msg/String, 1.0 a second, reliable" in listed
    assert "# /bolt/charging:" in listed
    assert "/bolt/transcript" not in listed


def test_a_microphone_of_numbers_is_found_by_its_name() -> None:
    array = "std_msgs/msg/Int16MultiArray"
    assert ears_of(survey(respeaker__audio=array, wheels=array))["audio_topic"] == "/respeaker/audio"
