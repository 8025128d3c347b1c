"""Whether the topics that are published bring what a profile's nodes read."""

from typing import Any

import pytest

from norm_core.records.speech import SpeechContent
from tactful_cli.up.input_check import CheckedInput, InputVerdict, check_inputs
from tactful_cli.up.profile import EffectiveParameters, Survey, Topic

IMAGE = "sensor_msgs/msg/CompressedImage"
STRING = "std_msgs/msg/String"
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
    parameters: dict[str, Any],
    *topics: Topic,
    actions: tuple[str, ...] = (),
    missing: str = "",
    namespace: str = "/tactful",
) -> list[CheckedInput]:
    effective = EffectiveParameters(
        parameters=parameters, problems=(), missing_types={missing: "it is not installed"} if missing else {}
    )
    survey = Survey(topics=topics, actions={name: ["tts_msgs/action/TTS"] for name in actions})
    return check_inputs(effective, survey, namespace)


@pytest.mark.parametrize(
    ("topic", "verdict", "told"),
    [
        (Topic(name="/eye", types=(IMAGE,), rate_hz=9.7), InputVerdict.OK, ""),
        (Topic(name="/eye", types=(IMAGE,), rate_hz=0.0), InputVerdict.WRONG, "its publisher sends nothing"),
        (
            Topic(name="/eye", types=(IMAGE,), rate_hz=9.7, publishers=("/bellhop/base", "/bellhop/base")),
            InputVerdict.WRONG,
            "several publishers (/bellhop/base, /bellhop/base); stop all but one",
        ),
        (Topic(name="/eye", types=(IMAGE,)), InputVerdict.WRONG, "is not installed here"),
        (Topic(name="/eye", types=("a/msg/B", IMAGE), rate_hz=1.0), InputVerdict.WRONG, "let one type be published"),
        (Topic(name="/head/eye", types=(IMAGE,), rate_hz=1.0), InputVerdict.MISSING, "topic of camera to /head/eye"),
        (Topic(name="/head/eye", types=("a/msg/B",), rate_hz=1.0), InputVerdict.MISSING, "start its driver"),
    ],
)
def test_each_fault_has_its_remedy(topic: Topic, verdict: InputVerdict, told: str) -> None:
    (camera,) = checked(CAMERA, topic)
    assert camera.verdict is verdict
    assert told in camera.remedy


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


def test_a_topic_that_the_profile_itself_publishes_is_not_missed() -> None:
    webcam = {"webcam": {"topic": "/eye"}}
    assert [each.verdict for each in checked({**CAMERA, **webcam})] == [InputVerdict.OK]


def test_an_action_can_tell_what_the_robot_says() -> None:
    ears = {**EARS, "robot_speech_topic": "/say", "robot_speech_type": ""}
    robot = checked({"ears": ears}, actions=("/say",))[-1]
    assert (robot.verdict, robot.found) == (InputVerdict.OK, "an action")


def test_a_quiet_topic_of_speech_is_not_called_well_and_is_no_fault() -> None:
    ears = {**EARS, "robot_speech_topic": "/says", "robot_speech_type": ""}
    robot = checked({"ears": ears}, Topic(name="/says", types=("std_msgs/msg/String",), rate_hz=0.0))[-1]
    assert (robot.verdict, robot.is_fault) == (InputVerdict.QUIET, False)
    assert "no message yet" in robot.found


def test_best_effort_speech_names_the_override_of_its_reliability() -> None:
    spoken = Topic(name="/tactful/robot_speech", types=(EARS["robot_speech_type"],), rate_hz=1.0, reliable=False)
    robot = checked({"ears": EARS}, spoken)[-1]
    assert "set qos_overrides./tactful/robot_speech.subscription.reliability to best_effort" in robot.remedy


def test_a_missing_microphone_names_the_texts_of_a_recognizer() -> None:
    microphone, _ = checked({"ears": EARS}, Topic(name="/transcript", types=("std_msgs/msg/String",), rate_hz=1.0))
    assert "set words_from to topic, and words_topic (as /transcript)" in microphone.remedy


def test_voices_are_looked_for_below_the_namespace_of_humans() -> None:
    voices, _ = checked({"ears": {**EARS, "words_from": "voices", "humans": "/humans"}})
    assert (voices.input.topic, voices.verdict) == ("/humans/voices/tracked", InputVerdict.MISSING)


ROBOT = {**WORDS, "words_type": STRING, "robot_speech_topic": "/says", "robot_speech_type": ""}


@pytest.mark.parametrize(
    ("topic", "type_name", "content", "verdict", "told"),
    [
        ("/says", "sensor_msgs/msg/Image", SpeechContent.NOTHING, InputVerdict.WRONG, "name a topic of its words"),
        ("/says", "a/msg/Sound", SpeechContent.SOUND, InputVerdict.OK, ""),
        ("/busy", STRING, SpeechContent.WORDS, InputVerdict.WRONG, "name a Bool or an action in robot_speaking_topic"),
        ("/busy", "std_msgs/msg/Bool", SpeechContent.TIMES, InputVerdict.OK, ""),
        ("/busy", "a/msg/Unknown", None, InputVerdict.OK, ""),
    ],
)
def test_what_a_topic_tells_of_the_robot_is_judged(
    topic: str, type_name: str, content: SpeechContent | None, verdict: InputVerdict, told: str
) -> None:
    words = Topic(name="/says", types=(STRING,), rate_hz=1.0, speech_content=SpeechContent.WORDS)
    judged = Topic(name=topic, types=(type_name,), rate_hz=1.0, speech_content=content)
    topics = {each.name: each for each in (words, judged)}.values()
    found = checked({"ears": {**ROBOT, "robot_speaking_topic": "/busy"}}, *topics)
    (robot,) = [each for each in found if each.input.topic == topic]
    assert robot.verdict is verdict
    assert told in robot.remedy


OF_A_ROBOT = {"/eye": IMAGE, "/heard": STRING, "/says": STRING}


def test_the_topics_of_another_robot_are_not_advised() -> None:
    left = [Topic(name=f"/left{name}", types=(type_name,), rate_hz=1.0) for name, type_name in OF_A_ROBOT.items()]
    for each in checked({**CAMERA, "ears": ROBOT}, *left):
        assert each.verdict is InputVerdict.MISSING
        assert "set " not in each.remedy
        assert each.remedy.endswith(f"where /left{each.input.topic} is of this robot, give --namespace left")


def test_a_robot_in_a_namespace_is_advised_by_names_of_its_profile() -> None:
    topics = [Topic(name=name, types=(IMAGE,), rate_hz=1.0) for name in ("/left/head/eye", "/eye")]
    (camera,) = checked(
        {"camera": {"topic": "/left/eye", "transport": "compressed"}}, *topics, namespace="/left/tactful"
    )
    assert camera.remedy == "set topic of camera to /head/eye"


BARE = {**EARS, "audio_topic": "/mic", "sample_format": "s16le", "rate_hz": 16_000, "channels": 1}
BYTES, NUMBERS = "std_msgs/msg/UInt8MultiArray", "std_msgs/msg/Int16MultiArray"


@pytest.mark.parametrize(
    ("ears", "type_name", "values_hz", "remedy"),
    [
        ({}, BYTES, 96_000, "set rate_hz of ears to 48000"),
        ({}, BYTES, 32_000, ""),
        ({"channels": 2}, BYTES, 32_000, "set rate_hz of ears to 8000, or correct channels"),
        ({"sample_format": "f32le"}, BYTES, 64_000, ""),
        ({"sample_format": "mulaw"}, BYTES, 64_000, "correct sample_format of ears"),
        ({}, NUMBERS, 16_000, ""),
        ({}, NUMBERS, 48_000, "set rate_hz of ears to 48000"),
        ({"audio_info_topic": "/mic_info"}, BYTES, 96_000, ""),
    ],
)
def test_sound_of_another_rate_is_named(ears: dict[str, Any], type_name: str, values_hz: int, remedy: str) -> None:
    topic = Topic(name="/mic", types=(type_name,), rate_hz=10.0, sound_values=3 * values_hz, sound_s=3.0)
    microphone, *_ = checked({"ears": {**BARE, **ears, "audio_type": type_name}}, topic)
    assert (microphone.verdict, bool(microphone.remedy)) == (
        InputVerdict.WRONG if remedy else InputVerdict.OK,
        bool(remedy),
    )
    assert remedy in microphone.remedy
