"""The profile that `up --init` writes, by the topics that it finds."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from norm_monitor.judge.deployment_context import DeploymentContext
from tactful_cli.up.profile import Survey, Topic
from tactful_cli.up.topic_choice import build_profile, choose_parts, format_profile

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


def ears_of(found: Survey) -> Mapping[str, Any]:
    return build_profile(choose_parts(found, HOME), found)["ears"]


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


def test_tracked_voices_come_before_the_texts_of_one() -> None:
    speech, ids = "hri_msgs/msg/LiveSpeech", "hri_msgs/msg/IdsList"
    topics = {"r1__voices__tracked": ids, "r1__voices__a__speech": speech, "mic": "audio_common_msgs/msg/AudioStamped"}
    found = survey(**topics)
    answers = choose_parts(found, HOME)
    nodes = build_profile(answers, found)
    assert nodes["ears"] == {"words_from": "voices", "humans": "/r1"}
    assert "/r1/voices/a/speech" not in format_profile(nodes, answers, found)


def test_topics_that_play_no_part_are_listed_in_the_file() -> None:
    answers = choose_parts(BOLT, HOME)
    text = format_profile(build_profile(answers, BOLT), answers, BOLT)
    listed = text.partition("# Not used:")[2]
    assert "# /robot_description: std_msgs/msg/String, 1.0 a second, reliable" in listed
    assert "# /bolt/charging:" in listed
    assert "/bolt/transcript" not in listed
