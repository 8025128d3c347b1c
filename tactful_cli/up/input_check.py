"""List the topics that a profile's nodes read, compare them with those that are published, and say what to do."""

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import Any

from norm_core.records.record import record
from norm_core.records.speech import SpeechContent
from norm_core.records.topics import ROBOT_SPEECH_TOPIC
from norm_monitor.senses.microphone.audio_message import AUDIO_MESSAGES
from norm_monitor.senses.microphone.pcm import SoundError, measure_sample_bytes
from norm_monitor.senses.microphone.sample_rate import describe_rate_problem, describe_rate_remedy, detect_other_rate_hz
from tactful_cli.up.profile import NAMESPACE, EffectiveParameters, Survey, Topic

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
    inputs: list[Input] = []
    if camera := parameters.get("camera"):
        pictures = _input("camera", camera, "topic", "pictures", "transport", tuple(IMAGE_TYPES.values()))
        inputs.append(replace(pictures, type_name=IMAGE_TYPES[camera["transport"]], is_stream=True))
    if ears := parameters.get("ears"):
        inputs += _heard(ears)
    if people := parameters.get("people"):
        tracked = _input("people", people, "humans", "tracked people", "ids_type", ("/IdsList",))
        inputs.append(replace(tracked, topic=f"{tracked.topic.rstrip('/')}/persons/tracked", is_stream=True))
    return [
        read if read.topic.startswith("/") else replace(read, topic=f"{node_namespace}/{read.topic}")
        for read in inputs
        if read.topic
    ]


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
    is_own = robot.type_name == ROBOT_SPEECH_TYPE or robot.topic == ROBOT_SPEECH_TOPIC
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
    nodes_by_topic = {
        parameters[node][name]: node for node, names in topics.items() if node in parameters for name in names
    }
    if "encounter_player" in parameters:
        nodes_by_topic[f"{node_namespace}/{ROBOT_SPEECH_TOPIC}"] = "encounter_player"
    return nodes_by_topic


class NearestTopics:
    """The topics of this robot; those that no input of the profile names come first."""

    def __init__(self, inputs: Sequence[Input], survey: Survey, node_namespace: str) -> None:
        self.namespace = node_namespace.removesuffix(f"/{NAMESPACE}")
        self._survey = survey
        named = {used.topic.removeprefix(self.namespace) for used in inputs}
        prefixes = Counter(
            topic.name.removesuffix(name) for topic in survey.topics for name in named if topic.name.endswith(name)
        )
        others = {prefix for prefix, count in prefixes.items() if count > 1}  # one alone may be a folder of this robot
        for topic in survey.topics:
            others |= {
                publisher.partition(f"/{NAMESPACE}/")[0]
                for publisher in topic.publishers
                if f"/{NAMESPACE}/" in publisher
            }
        foreign = tuple(f"{prefix}/" for prefix in others - {"", self.namespace})
        self._used = {used.topic for used in inputs}
        self._foreign = foreign
        self._topics = [
            topic
            for topic in survey.topics
            if topic.name.startswith(f"{self.namespace}/") and not topic.name.startswith(foreign)
        ]

    @property
    def texts(self) -> list[str]:
        """The topics of strings, which may be those of a recognizer."""
        return [topic.name for topic in self._topics if STRING_TYPE in topic.types]

    def of(self, wanted: Input) -> Topic | None:
        """Return the topic of the nearest name, of the type that is read or else of one that can be read."""
        alike = [topic for topic in self._topics if wanted.type_name in topic.types]
        if not alike and "" not in wanted.readable:  # where any type will do, none points to the topic
            alike = [topic for topic in self._topics if is_readable(wanted, topic)]
        alike = [topic for topic in alike if topic.name not in self._used] or alike
        nearest = difflib.get_close_matches(wanted.topic, [topic.name for topic in alike], 1, cutoff=0.0)
        return next((topic for topic in alike if topic.name in nearest), None)

    def other_robot_with(self, wanted: Input) -> str:
        """Return the same topic of another robot, which may be this one without its namespace; else an empty string."""
        names = (topic.name for topic in self._survey.topics if topic.name.startswith(self._foreign))
        return "" if self.namespace else next((name for name in names if name.endswith(wanted.topic)), "")


def is_readable(wanted: Input, topic: Topic) -> bool:
    """Whether the node reads the one type of a topic once its type is set."""
    return bool(wanted.type_parameter) and len(topic.types) == 1 and topic.types[0].endswith(wanted.readable)


# Types of sound that state no rate.
_BARE_SOUND = ("/AudioData", "/AudioDataStamped", "/UInt8MultiArray", "/Int16MultiArray")
_MIN_SOUND_S, _SLACK_S = 2.0, 0.5


class InputVerdict(StrEnum):
    """Whether an input brings what its node reads."""

    OK = "ok"
    QUIET = "quiet"  # published, and no message has come; no fault of speech
    MISSING = "missing"
    WRONG = "wrong"


@record
class CheckedInput:
    """An input with what was found of it, and the remedy where it is not well."""

    input: Input
    verdict: InputVerdict
    found: str
    remedy: str = ""

    @property
    def is_fault(self) -> bool:
        """Whether the node cannot read this input."""
        return self.verdict in {InputVerdict.MISSING, InputVerdict.WRONG}


def check_inputs(effective: EffectiveParameters, survey: Survey, node_namespace: str) -> list[CheckedInput]:
    """Judge every input of a profile."""
    inside = outputs_of(effective.parameters, node_namespace)
    wanted = inputs_of(effective.parameters, node_namespace)
    near = NearestTopics(wanted, survey, node_namespace)
    checked = [_check(wanted_input, effective, survey, inside, near) for wanted_input in wanted]
    checked = [_with_content(checked_input, wanted, survey) for checked_input in checked]
    return [_with_rate(checked_input, effective.parameters.get("ears", {}), survey) for checked_input in checked]


def _with_content(checked: CheckedInput, inputs: Sequence[Input], survey: Survey) -> CheckedInput:
    """Judge what a topic carries about the robot's speech, as ears does from its messages."""
    wanted, topic = checked.input, survey.topic(checked.input.topic)
    if topic is None or checked.is_fault or wanted.parameter not in ROBOT_PARAMETERS:
        return checked
    name = f"{wanted.parameter} of {wanted.node}"
    if topic.speech_content is SpeechContent.NOTHING:
        why = "carries nothing about the robot's speech"
        remedy = f"name a topic of its words, a Bool or its sound in {name}"
    elif wanted.parameter == ROBOT_PARAMETERS[1] and _gives_no_times(inputs, survey):
        why, remedy = "gives words and no times", f"name a Bool or an action in {name}, or leave it empty"
    else:
        return checked
    return replace(checked, verdict=InputVerdict.WRONG, found=f"{describe(topic)}; {why}", remedy=remedy)


def _with_rate(checked: CheckedInput, ears: Mapping[str, Any], survey: Survey) -> CheckedInput:
    """Compare the sound of messages that state no rate with the rate that the profile states."""
    topic = survey.topic(checked.input.topic)
    if topic is None or checked.verdict is not InputVerdict.OK or checked.input.parameter != "audio_topic":
        return checked
    states_rate = not topic.types[0].endswith(_BARE_SOUND) or ears["audio_info_topic"]
    if states_rate or topic.sound_s < _MIN_SOUND_S:
        return checked
    try:
        size = 1 if topic.types[0].endswith("/Int16MultiArray") else measure_sample_bytes(ears["sample_format"])
    except SoundError as error:
        return replace(checked, verdict=InputVerdict.WRONG, remedy=f"correct sample_format of ears: {error}")
    samples = topic.sound_values // (size * ears["channels"])
    other_hz = detect_other_rate_hz(samples, topic.sound_s, ears["rate_hz"], _SLACK_S)
    if other_hz is None:
        return checked
    state = f"{describe(topic)}; {describe_rate_problem(other_hz)}"
    return replace(checked, verdict=InputVerdict.WRONG, found=state, remedy=describe_rate_remedy(other_hz))


def _gives_no_times(inputs: Sequence[Input], survey: Survey) -> bool:
    topics = [survey.topic(used.topic) for used in inputs if used.parameter in ROBOT_PARAMETERS]
    timeless = {SpeechContent.WORDS, SpeechContent.NOTHING}
    return all(topic and topic.speech_content in timeless for topic in topics)


def _check(
    wanted: Input,
    effective: EffectiveParameters,
    survey: Survey,
    inside: Mapping[str, str],
    near: NearestTopics,
) -> CheckedInput:
    topic = survey.topic(wanted.topic)
    if topic and wanted.type_name and topic.types != (wanted.type_name,):
        state = f"{describe(topic)}, but read as {wanted.type_name}"
        remedy = _type_remedy(wanted, topic, near)
        return CheckedInput(input=wanted, verdict=InputVerdict.WRONG, found=state, remedy=remedy)
    if (why := effective.missing_types.get(wanted.type_name)) and (topic or not near.of(wanted)):
        problem, _, remedy = why.partition("; ")
        return CheckedInput(input=wanted, verdict=InputVerdict.WRONG, found=problem, remedy=remedy)
    if topic is None:
        if wanted.topic in inside:
            return CheckedInput(input=wanted, verdict=InputVerdict.OK, found=f"comes from {inside[wanted.topic]}")
        if wanted.topic in survey.actions:
            return CheckedInput(input=wanted, verdict=InputVerdict.OK, found="an action")
        return CheckedInput(
            input=wanted, verdict=InputVerdict.MISSING, found="nobody publishes it", remedy=_remedy(wanted, near)
        )
    return _check_published(wanted, topic)


def _check_published(wanted: Input, topic: Topic) -> CheckedInput:
    verdict, remedy = InputVerdict.WRONG, ""
    if wanted.is_reliable and not topic.reliable:
        name = f"qos_overrides.{topic.name}.subscription.reliability"
        remedy = f"the node asks for reliable delivery; set {name} to best_effort"
    elif wanted.is_stream and topic.rate_hz == 0:
        remedy = "its publisher sends nothing; start its device"
    elif wanted.is_stream and topic.rate_hz is None:
        remedy = f"{' and '.join(topic.types)} is not installed here; install its package, and source it"
    elif wanted.is_stream and len(topic.publishers) > 1:
        remedy = f"it has several publishers ({', '.join(topic.publishers)}); stop all but one"
    elif topic.rate_hz == 0:
        verdict, remedy = InputVerdict.QUIET, "speak while the check runs, to see that it is the right topic"
    else:
        verdict = InputVerdict.OK
    return CheckedInput(input=wanted, verdict=verdict, found=describe(topic), remedy=remedy)


def describe(topic: Topic) -> str:
    """Say of which type, rate and reliability a topic is."""
    rate = "no message yet" if topic.rate_hz == 0 else f"{topic.rate_hz or 0:.1f} a second"
    if topic.rate_hz is None:
        rate = "rate unknown, as its type is not installed here"
    return f"{' and '.join(topic.types)}, {rate}, {'reliable' if topic.reliable else 'best effort'}"


def _type_remedy(wanted: Input, topic: Topic, near: NearestTopics) -> str:
    """Name what to set where a topic has another type: the type if the node can read it, or else the topic."""
    if len(topic.types) > 1:
        return "let one type be published"
    if not is_readable(wanted, topic):
        return _remedy(wanted, near)
    install = f"install {topic.types[0].partition('/')[0]}, and " if topic.rate_hz is None else ""
    return f"{install}set {wanted.type_parameter} of {wanted.node} to {_type_setting(wanted, topic)}"


def _type_setting(wanted: Input, topic: Topic) -> str:
    transports = {type_name: transport for transport, type_name in IMAGE_TYPES.items()}
    return transports[topic.types[0]] if wanted.type_parameter == "transport" else topic.types[0]


def _remedy(wanted: Input, near: NearestTopics) -> str:
    name = f"{wanted.parameter} of {wanted.node}"
    if topic := near.of(wanted):
        and_type = "" if wanted.type_name in topic.types else f", and {wanted.type_parameter} to "
        setting = f"{and_type}{_type_setting(wanted, topic)}" if and_type else ""
        return f"set {name} to {topic.name.removeprefix(near.namespace)}{setting}"
    start = f"start its driver, or correct {name}; check ROS_DOMAIN_ID"
    if other := near.other_robot_with(wanted):
        namespace = other.removesuffix(wanted.topic).strip("/")
        return f"{start}; where {other} is of this robot, give --namespace {namespace}"
    if wanted.parameter != "audio_topic" or not near.texts:
        return start
    likely = " or ".join(near.texts)
    return f"{start}; where the robot has a recognizer, set words_from to topic, and words_topic (as {likely})"
