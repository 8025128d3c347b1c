"""Compare the topics that a profile's nodes read with those that are published, and say what to do."""

import difflib
from collections.abc import Mapping
from enum import StrEnum

from norm_core.records.record import record
from tactful_cli.up.inputs import IMAGE_TYPES, STRING_TYPE, Input, inputs_of, outputs_of
from tactful_cli.up.ros_tools import EffectiveParameters, Survey, Topic


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
    return [_check(each, effective, survey, inside) for each in inputs_of(effective.parameters, node_namespace)]


def _check(wanted: Input, effective: EffectiveParameters, survey: Survey, inside: Mapping[str, str]) -> CheckedInput:
    topic = survey.topic(wanted.topic)
    if topic and wanted.type_name and topic.types != (wanted.type_name,):
        found = f"{describe(topic)}, but read as {wanted.type_name}"
        remedy = _type_remedy(wanted, topic, survey)
        return CheckedInput(input=wanted, verdict=InputVerdict.WRONG, found=found, remedy=remedy)
    if why := effective.missing_types.get(wanted.type_name):
        problem, _, remedy = why.partition("; ")
        return CheckedInput(input=wanted, verdict=InputVerdict.WRONG, found=problem, remedy=remedy)
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
    verdict, remedy = InputVerdict.WRONG, ""
    if wanted.is_reliable and not topic.reliable:
        name = f"qos_overrides.{topic.name}.subscription.reliability"
        remedy = f"the node asks for reliable delivery; set {name} to best_effort"
    elif wanted.is_stream and topic.rate_hz == 0:
        remedy = "its publisher sends nothing; start its device"
    elif wanted.is_stream and topic.rate_hz is None:
        remedy = f"{' and '.join(topic.types)} is not installed here; install its package, and source it"
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


def _type_remedy(wanted: Input, topic: Topic, survey: Survey) -> str:
    """Name what to set where a topic has another type: the type if the node can read it, or else the topic."""
    if len(topic.types) > 1:
        return "let one type be published"
    (published,) = topic.types
    if not wanted.type_parameter or not published.endswith(wanted.readable):
        return _remedy(wanted, survey)
    transports = {type_name: transport for transport, type_name in IMAGE_TYPES.items()}
    value = transports[published] if wanted.type_parameter == "transport" else published
    install = f"install {published.partition('/')[0]}, and " if topic.rate_hz is None else ""
    return f"{install}set {wanted.type_parameter} of {wanted.node} to {value}"


def _remedy(wanted: Input, survey: Survey) -> str:
    alike = [topic.name for topic in survey.topics if wanted.type_name in topic.types]
    nearest = difflib.get_close_matches(wanted.topic, alike, 1, cutoff=0.0)
    name = f"{wanted.parameter} of {wanted.node}"
    if nearest:
        return f"set {name} to {nearest[0]}"
    start = f"start its driver, or correct {name}; check ROS_DOMAIN_ID"
    texts = [topic.name for topic in survey.topics if STRING_TYPE in topic.types]
    if wanted.parameter != "audio_topic" or not texts:
        return start
    likely = " or ".join(texts)
    return f"{start}; where the robot has a recogniser, set words_from to topic, and words_topic (as {likely})"
