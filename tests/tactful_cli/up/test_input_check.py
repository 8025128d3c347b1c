"""Whether the topics that are published bring what a profile's nodes read."""

from typing import Any

import pytest

from tactful_cli.up.input_check import CheckedInput, InputVerdict, check_inputs
from tactful_cli.up.ros_tools import EffectiveParameters, Survey, Topic

IMAGE = "sensor_msgs/msg/CompressedImage"
CAMERA = {"camera": {"topic": "/eye", "transport": "compressed"}}
EARS = {
    "words_from": "whisper",
    "audio_topic": "/audio",
    "audio_type": "std_msgs/msg/UInt8MultiArray",
    "audio_info_topic": "",
    "robot_speech_topic": "robot_speech",
    "robot_speech_type": "norm_interfaces/msg/RobotSpeech",
}


def checked(
    parameters: dict[str, Any], *topics: Topic, actions: tuple[str, ...] = (), missing: str = ""
) -> list[CheckedInput]:
    effective = EffectiveParameters(
        parameters=parameters, problems=(), missing_types={missing: "it is not installed"} if missing else {}
    )
    survey = Survey(topics=topics, actions={name: ["tts_msgs/action/TTS"] for name in actions})
    return check_inputs(effective, survey, "/tactful")


@pytest.mark.parametrize(
    ("topic", "verdict", "told"),
    [
        (Topic(name="/eye", types=(IMAGE,), rate_hz=9.7), InputVerdict.OK, ""),
        (Topic(name="/eye", types=(IMAGE,), rate_hz=0.0), InputVerdict.WRONG, "its publisher sends nothing"),
        (Topic(name="/eye", types=(IMAGE,)), InputVerdict.WRONG, "is not installed here"),
        (Topic(name="/eye", types=("a/msg/B", IMAGE), rate_hz=1.0), InputVerdict.WRONG, "let one type be published"),
        (Topic(name="/head/eye", types=(IMAGE,), rate_hz=1.0), InputVerdict.MISSING, "topic of camera to /head/eye"),
        (Topic(name="/head/eye", types=("a/msg/B",), rate_hz=1.0), InputVerdict.MISSING, "start its driver"),
    ],
    ids=["well", "silent", "unknown type", "two types", "other name", "absent"],
)
def test_each_fault_has_its_remedy(topic: Topic, verdict: InputVerdict, told: str) -> None:
    (camera,) = checked(CAMERA, topic)
    assert camera.verdict is verdict
    assert told in camera.remedy


def test_a_type_that_is_not_installed_is_told_first() -> None:
    microphone, _ = checked({"ears": EARS}, missing="std_msgs/msg/UInt8MultiArray")
    assert (microphone.verdict, microphone.found) == (InputVerdict.WRONG, "it is not installed")


WORDS = {**EARS, "words_from": "topic", "words_topic": "/heard", "is_speaking_topic": ""}


@pytest.mark.parametrize(
    ("ears", "topic", "remedy"),
    [
        ({**WORDS, "words_type": "std_msgs/msg/Strng"}, "/heard", "set words_type of ears to std_msgs/msg/String"),
        (
            {**EARS, "robot_speech_topic": "/says", "robot_speech_type": "std_msgs/msg/Bool"},
            "/says",
            "set robot_speech_type of ears to std_msgs/msg/String",
        ),
        ({**EARS, "audio_topic": "/says", "audio_type": "a/msg/AudioData"}, "/says", "set audio_topic of ears to /mic"),
    ],
    ids=["misspelt", "wrong but installed", "type that the node cannot read"],
)
def test_the_published_type_decides_the_remedy(ears: dict[str, Any], topic: str, remedy: str) -> None:
    strings = [Topic(name=name, types=("std_msgs/msg/String",), rate_hz=1.0) for name in ("/heard", "/says")]
    others = [
        Topic(name=name, types=(type_name,), rate_hz=1.0)
        for name, type_name in {"/is_speaking": "std_msgs/msg/Bool", "/mic": "a/msg/AudioData"}.items()
    ]
    found = checked({"ears": ears}, *strings, *others, missing="std_msgs/msg/Strng")
    (wrong,) = [each for each in found if each.input.topic == topic]
    assert (wrong.verdict, wrong.remedy) == (InputVerdict.WRONG, remedy)


def test_a_type_of_a_package_not_installed_is_to_be_installed() -> None:
    ears = {**WORDS, "words_type": "std_msgs/msg/String"}
    words, _ = checked({"ears": ears}, Topic(name="/heard", types=("hri_msgs/msg/LiveSpeech",)))
    assert words.remedy == "install hri_msgs, and set words_type of ears to hri_msgs/msg/LiveSpeech"


def test_a_topic_that_the_profile_itself_publishes_is_not_missed() -> None:
    webcam = {"webcam": {"topic": "/eye"}}
    assert [each.verdict for each in checked({**CAMERA, **webcam})] == [InputVerdict.OK]


def test_an_action_can_tell_what_the_robot_says() -> None:
    ears = {**EARS, "robot_speech_topic": "/say", "robot_speech_type": ""}
    robot = checked({"ears": ears}, actions=("/say",))[-1]
    assert (robot.verdict, robot.found) == (InputVerdict.OK, "an action")


def test_a_topic_that_times_the_robots_words_is_checked_too() -> None:
    ears = {**EARS, "robot_speaking_topic": "/is_speaking"}
    timing = next(each for each in checked({"ears": ears}) if each.input.topic == "/is_speaking")
    assert timing.verdict is InputVerdict.MISSING


def test_a_quiet_topic_of_speech_is_not_called_well_and_is_no_fault() -> None:
    ears = {**EARS, "robot_speech_topic": "/says", "robot_speech_type": ""}
    robot = checked({"ears": ears}, Topic(name="/says", types=("std_msgs/msg/String",), rate_hz=0.0))[-1]
    assert (robot.verdict, robot.is_fault) == (InputVerdict.QUIET, False)
    assert "no message yet" in robot.found


def test_a_missing_microphone_names_the_texts_of_a_recogniser() -> None:
    microphone, _ = checked({"ears": EARS}, Topic(name="/transcript", types=("std_msgs/msg/String",), rate_hz=1.0))
    assert "set words_from to topic, and words_topic (as /transcript)" in microphone.remedy
