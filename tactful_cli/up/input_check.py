"""Compare the topics that a profile's nodes read with those that are published, and say what to do."""

import difflib
from collections.abc import Mapping
from enum import StrEnum

from norm_core.records.record import record
from tactful_cli.up.inputs import IMAGE_TYPES, Input, inputs_of, outputs_of
from tactful_cli.up.ros_tools import EffectiveParameters, Survey, Topic


class InputVerdict(StrEnum):
    """Whether an input brings what its node reads."""

    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"


@record
class CheckedInput:
    """An input with what was found of it, and the remedy where it is not well."""

    input: Input
    verdict: InputVerdict
    found: str
    remedy: str = ""


def check_inputs(effective: EffectiveParameters, survey: Survey, node_namespace: str) -> list[CheckedInput]:
    """Judge every input of a profile."""
    inside = outputs_of(effective.parameters, node_namespace)
    return [_check(each, effective, survey, inside) for each in inputs_of(effective.parameters, node_namespace)]


def _check(wanted: Input, effective: EffectiveParameters, survey: Survey, inside: Mapping[str, str]) -> CheckedInput:
    topic = survey.topic(wanted.topic)
    if topic and wanted.type_name and topic.types != (wanted.type_name,):
        found = f"{_found(topic)}, but read as {wanted.type_name}"
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
    wrong = ""
    if wanted.is_reliable and not topic.reliable:
        name = f"qos_overrides.{topic.name}.subscription.reliability"
        wrong = f"the node asks for reliable delivery; set {name} to best_effort"
    elif wanted.is_stream and topic.rate_hz == 0:
        wrong = "its publisher sends nothing; start its device"
    elif wanted.is_stream and topic.rate_hz is None:
        wrong = f"{' and '.join(topic.types)} is not installed here; install its package, and source it"
    verdict = InputVerdict.WRONG if wrong else InputVerdict.OK
    return CheckedInput(input=wanted, verdict=verdict, found=_found(topic), remedy=wrong)


def _found(topic: Topic) -> str:
    rate = "rate unknown" if topic.rate_hz is None else f"{topic.rate_hz:.1f} a second"
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
    return f"set {name} to {nearest[0]}" if nearest else f"start its driver, or correct {name}; check ROS_DOMAIN_ID"
