"""Compare the topics that a profile's nodes read with those that are published, and say what to do."""

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from norm_core.records.record import record
from norm_core.records.speech import SpeechContent
from norm_monitor.senses.microphone.block_stream import other_rate_hz, rate_problem, rate_remedy
from norm_monitor.senses.microphone.pcm import SoundError, sample_bytes
from tactful_cli.up.inputs import IMAGE_TYPES, ROBOT_PARAMETERS, STRING_TYPE, Input, inputs_of, outputs_of
from tactful_cli.up.profile import NAMESPACE
from tactful_cli.up.ros_tools import EffectiveParameters, Survey, Topic


class NearestTopics:
    """The topics of this robot; those that no input of the profile names come first."""

    def __init__(self, inputs: Sequence[Input], survey: Survey, node_namespace: str) -> None:
        self.namespace = node_namespace.removesuffix(f"/{NAMESPACE}")
        self._survey = survey
        named = {each.topic.removeprefix(self.namespace) for each in inputs}
        prefixes = Counter(
            topic.name.removesuffix(name) for topic in survey.topics for name in named if topic.name.endswith(name)
        )
        others = {prefix for prefix, count in prefixes.items() if count > 1}  # one alone may be a folder of this robot
        for topic in survey.topics:
            others |= {each.partition(f"/{NAMESPACE}/")[0] for each in topic.publishers if f"/{NAMESPACE}/" in each}
        foreign = tuple(f"{prefix}/" for prefix in others - {"", self.namespace})
        self._used = {each.topic for each in inputs}
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
    checked = [_check(each, effective, survey, inside, near) for each in wanted]
    checked = [_with_content(each, wanted, survey) for each in checked]
    return [_with_rate(each, effective.parameters.get("ears", {}), survey) for each in checked]


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
        size = 1 if topic.types[0].endswith("/Int16MultiArray") else sample_bytes(ears["sample_format"])
    except SoundError as error:
        return replace(checked, verdict=InputVerdict.WRONG, remedy=f"correct sample_format of ears: {error}")
    samples = topic.sound_values // (size * ears["channels"])
    other_hz = other_rate_hz(samples, topic.sound_s, ears["rate_hz"], _SLACK_S)
    if other_hz is None:
        return checked
    found = f"{describe(topic)}; {rate_problem(other_hz)}"
    return replace(checked, verdict=InputVerdict.WRONG, found=found, remedy=rate_remedy(other_hz))


def _gives_no_times(inputs: Sequence[Input], survey: Survey) -> bool:
    topics = [survey.topic(each.topic) for each in inputs if each.parameter in ROBOT_PARAMETERS]
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
        found = f"{describe(topic)}, but read as {wanted.type_name}"
        remedy = _type_remedy(wanted, topic, near)
        return CheckedInput(input=wanted, verdict=InputVerdict.WRONG, found=found, remedy=remedy)
    if (why := effective.missing_types.get(wanted.type_name)) and (topic or not near.of(wanted)):
        problem, _, remedy = why.partition("; ")
        return CheckedInput(input=wanted, verdict=InputVerdict.WRONG, found=problem, remedy=remedy)
    if topic is None:
        if wanted.topic in inside:
            return CheckedInput(input=wanted, verdict=InputVerdict.OK, found=f"comes from {inside[wanted.topic]}")
        is_action = wanted.topic in survey.actions
        if is_action:
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
    elif wanted.is_stream and len(topic.publishers) > 1 and topic.several_send:
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
