"""Write a profile from the topics that are published, and ask what they cannot tell."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from norm_core.records.record import record
from norm_core.runtime.program import PROGRAM
from norm_monitor.judge.deployment_context import DeploymentContext
from tactful_cli.up.candidates import (
    TopicCandidate,
    cameras,
    microphones,
    people,
    recognisers,
    robot_speech,
)
from tactful_cli.up.inputs import IMAGE_TYPES, ROBOT_SPEECH_TYPE
from tactful_cli.up.ros_tools import Survey

# Asks which of several fits: the question, the choices and the index of the default one; None for none of them.
Choose = Callable[[str, Sequence[str], int | None], int | None]

_NONE = "none of them"


@record
class Answers:
    """What plays which part; None where nothing does."""

    camera: TopicCandidate | None
    microphone: TopicCandidate | None
    recogniser: TopicCandidate | None
    robot: TopicCandidate | None
    people: TopicCandidate | None
    context: DeploymentContext


def ask(survey: Survey, choose: Choose, context: DeploymentContext | None) -> Answers:
    """Ask which topic plays which part; what is found once is offered first."""

    def which(question: str, candidates: Sequence[TopicCandidate]) -> TopicCandidate | None:
        if not candidates:
            return None
        index = choose(question, [f"{each.name} ({each.remark})" for each in candidates], 0)
        return None if index is None else candidates[index]

    if context is None:
        contexts = list(DeploymentContext)
        default = contexts.index(DeploymentContext.UNSPECIFIED)
        index = choose("Where does the robot work?", [each.value for each in contexts], default)
        context = contexts[default if index is None else index]
    recogniser = which("Which topic has the texts of the robot's own recogniser?", recognisers(survey))
    return Answers(
        camera=which("Which topic is the camera in the robot's head?", cameras(survey)),
        recogniser=recogniser,
        microphone=None if recogniser else which("Which topic is the microphone?", microphones(survey)),
        robot=which("Which topic tells what the robot itself says?", robot_speech(survey)),
        people=which("Which topic tracks people?", people(survey)),
        context=context,
    )


def profile_of(answers: Answers, survey: Survey) -> dict[str, dict[str, Any]]:
    """Return the parameters of each node that the answers call for."""
    nodes: dict[str, dict[str, Any]] = {}
    if answers.camera:
        transport = next(name for name, type_name in IMAGE_TYPES.items() if type_name == answers.camera.type_name)
        nodes["camera"] = {"topic": answers.camera.name, "transport": transport}
    if answers.people:
        nodes["people"] = {"humans": answers.people.name.removesuffix("/persons/tracked")}
        nodes.get("camera", {})["faces"] = False  # nobody counts twice
    nodes["ears"] = {**_heard(answers, survey), **_robot(answers.robot)}
    sources = ["utterances"]
    sources += ["frames"] if answers.camera else []
    sources += ["presence"] if answers.camera or answers.people else []
    nodes["monitor"] = {
        "windows": {"sources": sorted(sources)},
        "judge": {"deployment_context": answers.context.value},
    }
    nodes["selector"] = {}
    return nodes


def profile_text(nodes: Mapping[str, Any], answers: Answers) -> str:
    """Return the profile as YAML, with what was found beside it."""
    lines = [f"# Written by {PROGRAM} up --init from the topics that were published then."]
    remarks = {
        "camera": answers.camera,
        "ears": answers.recogniser or answers.microphone,
        "people": answers.people,
    }
    for node, parameters in nodes.items():
        lines.append("")
        if found := remarks.get(node):
            lines.append(f"# {found.name}: {found.remark}")
        if node == "ears":
            lines += [_robot_remark(answers.robot)]
        section = {f"/tactful/{node}": {"ros__parameters": parameters}}
        lines.append(yaml.safe_dump(section, sort_keys=False, allow_unicode=True).rstrip("\n"))
    return "\n".join(lines) + "\n"


def _heard(answers: Answers, survey: Survey) -> dict[str, Any]:
    if answers.recogniser:
        voice = answers.recogniser.name.rpartition("/")[0]
        speaking = survey.topic(f"{voice}/is_speaking")
        return {
            "words_from": "topic",
            "words_topic": answers.recogniser.name,
            "words_type": answers.recogniser.type_name,
            "is_speaking_topic": speaking.name if speaking else "",
        }
    if not answers.microphone:
        return {}
    heard = {"audio_topic": answers.microphone.name, "audio_type": answers.microphone.type_name}
    infos = [topic for topic in survey.topics if topic.types == ("audio_common_msgs/msg/AudioInfo",)]
    if infos:
        heard["audio_info_topic"] = infos[0].name
    return heard


def _robot(robot: TopicCandidate | None) -> dict[str, Any]:
    if robot is None:
        return {}
    found: dict[str, Any] = {"robot_speech_topic": robot.name}
    if robot.type_name:
        found["robot_speech_type"] = robot.type_name
    if robot.type_name == ROBOT_SPEECH_TYPE and not robot.is_reliable:
        found["qos_overrides"] = {robot.name: {"subscription": {"reliability": "best_effort"}}}
    return found


def _robot_remark(robot: TopicCandidate | None) -> str:
    if robot is None:
        return "# Nothing was found of the robot's own speech, so nothing it says is flagged: set robot_speech_topic."
    return f"# {robot.name}: {robot.remark}"
