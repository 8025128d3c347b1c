"""Compare the topics that a profile's nodes read with those that are published, and say what to do."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from norm_core.records.record import record
from tactful_cli.up.ros_tools import EffectiveParameters, Survey, Topic

ROBOT_SPEECH = "robot_speech"
ROBOT_SPEECH_TYPE = "norm_interfaces/msg/RobotSpeech"
IMAGE_TYPES = {"compressed": "sensor_msgs/msg/CompressedImage", "raw": "sensor_msgs/msg/Image"}


class InputVerdict(StrEnum):
    """Whether an input brings what its node reads."""

    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"


@record
class Input:
    """A topic that a node reads. `type_name` is empty where any type will do."""

    node: str
    brings: str
    topic: str
    type_name: str
    parameter: str
    is_stream: bool = False  # whether messages must come all the time
    is_reliable: bool = False  # whether the node asks for reliable delivery


@record
class CheckedInput:
    """An input with what was found of it, and the remedy where it is not well."""

    input: Input
    verdict: InputVerdict
    found: str
    remedy: str = ""


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
            is_stream=True,
        )
        if ears["audio_info_topic"]:
            yield Input(
                node="ears",
                brings="the sound's format",
                topic=ears["audio_info_topic"],
                type_name=ears["audio_info_type"],
                parameter="audio_info_topic",
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
        is_reliable=is_own,
    )


def check_inputs(effective: EffectiveParameters, survey: Survey, node_namespace: str) -> list[CheckedInput]:
    """Judge every input of a profile."""
    inside = outputs_of(effective.parameters, node_namespace)
    return [_check(each, effective, survey, inside) for each in inputs_of(effective.parameters, node_namespace)]


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


def _check(wanted: Input, effective: EffectiveParameters, survey: Survey, inside: Mapping[str, str]) -> CheckedInput:
    topic = survey.topic(wanted.topic)
    if why := effective.missing_types.get(wanted.type_name):
        return CheckedInput(input=wanted, verdict=InputVerdict.WRONG, found=why, remedy="install it, and source it")
    if topic is None:
        if wanted.topic in inside:
            return CheckedInput(input=wanted, verdict=InputVerdict.OK, found=f"comes from {inside[wanted.topic]}")
        is_action = wanted.topic in survey.actions
        if is_action:
            return CheckedInput(input=wanted, verdict=InputVerdict.OK, found="an action")
        return CheckedInput(
            input=wanted, verdict=InputVerdict.MISSING, found="nobody publishes it", remedy=_remedy(wanted, survey)
        )
    return _check_published(wanted, topic)


def _check_published(wanted: Input, topic: Topic) -> CheckedInput:
    types = " and ".join(topic.types)
    rate = "rate unknown" if topic.rate_hz is None else f"{topic.rate_hz:.1f} a second"
    found = f"{types}, {rate}, {'reliable' if topic.reliable else 'best effort'}"
    wrong = ""
    if wanted.type_name and topic.types != (wanted.type_name,):
        wrong = f"read as {wanted.type_name}; set the type in the profile, or let one type be published"
    elif wanted.is_reliable and not topic.reliable:
        name = f"qos_overrides.{topic.name}.subscription.reliability"
        wrong = f"the node asks for reliable delivery; set {name} to best_effort"
    elif wanted.is_stream and topic.rate_hz == 0:
        wrong = "its publisher sends nothing; start its device"
    elif wanted.is_stream and topic.rate_hz is None:
        wrong = f"{types} is not installed here; install its package, and source it"
    verdict = InputVerdict.WRONG if wrong else InputVerdict.OK
    return CheckedInput(input=wanted, verdict=verdict, found=found, remedy=wrong)


def _remedy(wanted: Input, survey: Survey) -> str:
    alike = [topic.name for topic in survey.topics if wanted.type_name in topic.types]
    nearest = difflib.get_close_matches(wanted.topic, alike, 1, cutoff=0.0)
    name = f"{wanted.parameter} of {wanted.node}"
    return f"set {name} to {nearest[0]}" if nearest else f"start its driver, or correct {name}; check ROS_DOMAIN_ID"


def _resolved(wanted: Input, node_namespace: str) -> Input:
    if wanted.topic.startswith("/"):
        return wanted
    return replace(wanted, topic=f"{node_namespace}/{wanted.topic}")
