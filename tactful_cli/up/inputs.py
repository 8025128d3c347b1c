"""List the topics that a profile's nodes read from others and publish for others."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from norm_core.records.record import record
from norm_monitor.senses.microphone.audio_message import AUDIO_MESSAGES

ROBOT_SPEECH = "robot_speech"
ROBOT_SPEECH_TYPE = "norm_interfaces/msg/RobotSpeech"
BOOL_TYPE, STRING_TYPE = "std_msgs/msg/Bool", "std_msgs/msg/String"
ARRAY_TYPES = ("std_msgs/msg/UInt8MultiArray", "std_msgs/msg/Int16MultiArray")
IMAGE_TYPES = {"compressed": "sensor_msgs/msg/CompressedImage", "raw": "sensor_msgs/msg/Image"}
ROBOT_PARAMETERS = ("robot_speech_topic", "robot_speaking_topic")
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


def is_microphone(topic: str, type_name: str) -> bool:
    """Whether a topic may be a microphone: by its type, or an array of numbers by its name."""
    is_named = any(word in topic.lower() for word in ("audio", "sound", "mic"))
    return type_name.endswith(AUDIO_MESSAGES) or (type_name in ARRAY_TYPES and is_named)


def inputs_of(parameters: Mapping[str, Mapping[str, Any]], node_namespace: str) -> list[Input]:
    """List what the nodes of a profile read from others."""
    found: list[Input] = []
    if camera := parameters.get("camera"):
        pictures = _input("camera", camera, "topic", "pictures", "transport", tuple(IMAGE_TYPES.values()))
        found.append(replace(pictures, type_name=IMAGE_TYPES[camera["transport"]], is_stream=True))
    if ears := parameters.get("ears"):
        found += _heard(ears)
    if people := parameters.get("people"):
        tracked = _input("people", people, "humans", "tracked people", "ids_type", ("/IdsList",))
        found.append(replace(tracked, topic=f"{tracked.topic.rstrip('/')}/persons/tracked", is_stream=True))
    return [_resolved(each, node_namespace) for each in found if each.topic]


def _input(  # noqa: PLR0917
    node: str,
    parameters: Mapping[str, Any],
    parameter: str,
    brings: str,
    type_parameter: str = "",
    readable: tuple[str, ...] = (),
) -> Input:
    return Input(
        node=node,
        brings=brings,
        topic=parameters.get(parameter, ""),
        type_name=parameters.get(type_parameter, ""),
        parameter=parameter,
        type_parameter=type_parameter,
        readable=readable,
    )


def _heard(ears: Mapping[str, Any]) -> list[Input]:
    reads = partial(_input, "ears", ears)
    if ears["words_from"] == "topic":
        people = [
            reads("words_topic", "people's words", "words_type", ("/LiveSpeech", "/String")),
            replace(reads("is_speaking_topic", "when people speak"), type_name=BOOL_TYPE),
        ]
    elif ears["words_from"] == "voices":
        tracked = replace(reads("humans", "tracked voices"), type_name="hri_msgs/msg/IdsList")
        people = [replace(tracked, topic=f"{tracked.topic}/voices/tracked")]
    else:
        sound = reads("audio_topic", "the microphone's sound", "audio_type", (*AUDIO_MESSAGES, *ARRAY_TYPES))
        people = [
            replace(sound, is_stream=True),
            reads("audio_info_topic", "the sound's format", "audio_info_type", ("/AudioInfo",)),
        ]
    timing = reads("robot_speaking_topic", "when the robot speaks")
    robot = reads("robot_speech_topic", "the robot's speech", "robot_speech_type", _ANY_TYPE)
    is_own = robot.type_name == ROBOT_SPEECH_TYPE or robot.topic == ROBOT_SPEECH
    robot_type = ROBOT_SPEECH_TYPE if is_own else robot.type_name
    return [*people, timing, replace(robot, type_name=robot_type, is_reliable=is_own)]


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
