"""List the topics that a profile's nodes read from others and publish for others."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from norm_core.records.record import record

ROBOT_SPEECH = "robot_speech"
ROBOT_SPEECH_TYPE = "norm_interfaces/msg/RobotSpeech"
IMAGE_TYPES = {"compressed": "sensor_msgs/msg/CompressedImage", "raw": "sensor_msgs/msg/Image"}
AUDIO_NAMES = ("AudioData", "AudioDataStamped", "AudioStamped", "AudioBuffer", "RawAudio")
_BYTES_TYPE = "std_msgs/msg/UInt8MultiArray"
_ANY_TYPE = ("",)  # an ending of every name


@record
class Input:
    """A topic that a node reads. `type_name` is empty where any type will do.

    `type_parameter` sets the type, if one does; the node can then read types that end as `readable` says.
    """

    node: str
    brings: str
    topic: str
    type_name: str
    parameter: str
    type_parameter: str = ""
    readable: tuple[str, ...] = ()
    is_stream: bool = False  # whether messages must come all the time
    is_reliable: bool = False  # whether the node asks for reliable delivery


def inputs_of(parameters: Mapping[str, Mapping[str, Any]], node_namespace: str) -> list[Input]:
    """List what the nodes of a profile read from others."""
    found: list[Input] = []
    if camera := parameters.get("camera"):
        type_name = IMAGE_TYPES[camera["transport"]]
        found.append(
            Input(
                node="camera",
                brings="pictures",
                topic=camera["topic"],
                type_name=type_name,
                parameter="topic",
                type_parameter="transport",
                readable=tuple(IMAGE_TYPES.values()),
                is_stream=True,
            )
        )
    if ears := parameters.get("ears"):
        found += _heard(ears)
    if people := parameters.get("people"):
        tracked = f"{people['humans'].rstrip('/')}/persons/tracked"
        found.append(
            Input(
                node="people",
                brings="tracked people",
                topic=tracked,
                type_name=people["ids_type"],
                parameter="humans",
                type_parameter="ids_type",
                readable=("/IdsList",),
                is_stream=True,
            )
        )
    return [_resolved(each, node_namespace) for each in found]


def _heard(ears: Mapping[str, Any]) -> Iterator[Input]:
    if ears["words_from"] == "topic":
        yield Input(
            node="ears",
            brings="people's words",
            topic=ears["words_topic"],
            type_name=ears["words_type"],
            parameter="words_topic",
            type_parameter="words_type",
            readable=("/LiveSpeech", "/String"),
        )
        if ears["is_speaking_topic"]:
            yield Input(
                node="ears",
                brings="when people speak",
                topic=ears["is_speaking_topic"],
                type_name="std_msgs/msg/Bool",
                parameter="is_speaking_topic",
            )
    else:
        yield Input(
            node="ears",
            brings="the microphone's sound",
            topic=ears["audio_topic"],
            type_name=ears["audio_type"],
            parameter="audio_topic",
            type_parameter="audio_type",
            readable=(*AUDIO_NAMES, _BYTES_TYPE),
            is_stream=True,
        )
        if ears["audio_info_topic"]:
            yield Input(
                node="ears",
                brings="the sound's format",
                topic=ears["audio_info_topic"],
                type_name=ears["audio_info_type"],
                parameter="audio_info_topic",
                type_parameter="audio_info_type",
                readable=("/AudioInfo",),
            )
    if speaking := ears.get("robot_speaking_topic"):
        yield Input(
            node="ears",
            brings="when the robot speaks",
            topic=speaking,
            type_name="",
            parameter="robot_speaking_topic",
        )
    robot_type = ears["robot_speech_type"]
    is_own = robot_type == ROBOT_SPEECH_TYPE or ears["robot_speech_topic"] == ROBOT_SPEECH
    yield Input(
        node="ears",
        brings="the robot's speech",
        topic=ears["robot_speech_topic"],
        type_name=ROBOT_SPEECH_TYPE if is_own else robot_type,
        parameter="robot_speech_topic",
        type_parameter="robot_speech_type",
        readable=_ANY_TYPE,
        is_reliable=is_own,
    )


def outputs_of(parameters: Mapping[str, Mapping[str, Any]], node_namespace: str) -> dict[str, str]:
    """List the topics that the profile's own nodes publish for others, with the node."""
    topics = {
        "webcam": ("topic",),
        "microphone": ("topic",),
        "typed_robot": ("topic",),
        "encounter_player": ("audio_topic", "camera_topic"),
    }
    found = {parameters[node][name]: node for node, names in topics.items() if node in parameters for name in names}
    if "encounter_player" in parameters:
        found[f"{node_namespace}/{ROBOT_SPEECH}"] = "encounter_player"
    return found


def _resolved(wanted: Input, node_namespace: str) -> Input:
    if wanted.topic.startswith("/"):
        return wanted
    return replace(wanted, topic=f"{node_namespace}/{wanted.topic}")
