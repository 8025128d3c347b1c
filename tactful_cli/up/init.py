"""Write a profile from the topics that are published, and ask what they cannot tell."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
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
    people_voices,
    recognisers,
    robot_speech,
    robot_voices,
)
from tactful_cli.up.inputs import IMAGE_TYPES, ROBOT_SPEECH_TYPE
from tactful_cli.up.ros_tools import Survey

# Asks which of several fits, and returns its index: the question, the choices and the index of the default one.
Choose = Callable[[str, Sequence[str], int], int]

_NONE = "none of them"
_NOTHING_HEARD = (
    "# Nothing was found of people's words: set audio_topic and audio_type, or words_from, words_topic and words_type."
)


@record
class Answers:
    """What plays which part; None where nothing does."""

    camera: TopicCandidate | None
    microphone: TopicCandidate | None
    recogniser: TopicCandidate | None
    people_voice: TopicCandidate | None
    robot: TopicCandidate | None
    robot_voice: TopicCandidate | None
    people: TopicCandidate | None
    context: DeploymentContext

    @property
    def chosen(self) -> tuple[TopicCandidate, ...]:
        """What plays a part."""
        parts = [getattr(self, field.name) for field in fields(self)]
        return tuple(part for part in parts if isinstance(part, TopicCandidate))


def ask(survey: Survey, choose: Choose, context: DeploymentContext | None) -> Answers:
    """Ask which topic plays which part; what its type or its name tells is offered as the default."""
    taken: set[str] = set()

    def which(question: str, candidates: Sequence[TopicCandidate]) -> TopicCandidate | None:
        free = [each for each in candidates if each.name not in taken]
        if not free:
            return None
        choices = [*(f"{each.name} ({each.remark})" for each in free), _NONE]
        index = choose(question, choices, 0 if free[0].is_likely else len(free))
        if index == len(free):
            return None
        taken.add(free[index].name)
        return free[index]

    if context is None:
        contexts = list(DeploymentContext)
        names = [each.value for each in contexts]
        context = contexts[choose("Where does the robot work?", names, contexts.index(DeploymentContext.UNSPECIFIED))]
    recogniser = which("Which topic has people's words, from the robot's own recogniser?", recognisers(survey))
    people_voice = microphone = None
    if recogniser:
        people_voice = which("Which Bool is true while people speak?", people_voices(survey, recogniser))
    else:
        microphone = which("Which topic is the microphone?", microphones(survey))
    robot = which("Which topic tells what the robot itself says?", robot_speech(survey))
    times_itself = robot is not None and robot.type_name == ROBOT_SPEECH_TYPE
    voices = [] if times_itself else robot_voices(survey)
    return Answers(
        recogniser=recogniser,
        people_voice=people_voice,
        microphone=microphone,
        robot=robot,
        robot_voice=which("Which Bool is true while the robot itself speaks?", voices),
        camera=which("Which topic is the camera in the robot's head?", cameras(survey)),
        people=which("Which topic tracks people?", people(survey)),
        context=context,
    )


def unused(answers: Answers, survey: Survey) -> list[TopicCandidate]:
    """List the topics that could play a part and play none."""
    parts = (recognisers, robot_speech, robot_voices, microphones, cameras, people)
    taken = {each.name for each in answers.chosen}
    found = {each.name: each for part in parts for each in part(survey) if each.name not in taken}
    return list(found.values())


def profile_of(answers: Answers, survey: Survey) -> dict[str, dict[str, Any]]:
    """Return the parameters of each node that the answers call for."""
    nodes: dict[str, dict[str, Any]] = {}
    if answers.camera:
        transport = next(name for name, type_name in IMAGE_TYPES.items() if type_name == answers.camera.type_name)
        nodes["camera"] = {"topic": answers.camera.name, "transport": transport}
    if answers.people:
        nodes["people"] = {"humans": answers.people.name.removesuffix("/persons/tracked")}
        nodes.get("camera", {})["faces"] = False  # nobody counts twice
    nodes["ears"] = {**_heard(answers, survey), **_robot(answers)}
    sources = ["utterances"]
    sources += ["frames"] if answers.camera else []
    sources += ["presence"] if answers.camera or answers.people else []
    nodes["monitor"] = {
        "windows": {"sources": sorted(sources)},
        "judge": {"deployment_context": answers.context.value},
    }
    nodes["selector"] = {}
    return nodes


def profile_text(nodes: Mapping[str, Any], answers: Answers, survey: Survey) -> str:
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
            if not found:
                lines.append(_NOTHING_HEARD)
            lines += [_robot_remark(answers.robot or answers.robot_voice)]
        section = {f"/tactful/{node}": {"ros__parameters": parameters}}
        lines.append(yaml.safe_dump(section, sort_keys=False, allow_unicode=True).rstrip("\n"))
    if others := unused(answers, survey):
        lines += ["", "# Not used:", *(f"# {each.name}: {each.remark}" for each in others)]
    return "\n".join(lines) + "\n"


def _heard(answers: Answers, survey: Survey) -> dict[str, Any]:
    if answers.recogniser:
        return {
            "words_from": "topic",
            "words_topic": answers.recogniser.name,
            "words_type": answers.recogniser.type_name,
            "is_speaking_topic": answers.people_voice.name if answers.people_voice else "",
        }
    if not answers.microphone:
        return {}
    heard = {"audio_topic": answers.microphone.name, "audio_type": answers.microphone.type_name}
    infos = [topic for topic in survey.topics if topic.types == ("audio_common_msgs/msg/AudioInfo",)]
    if infos:
        heard["audio_info_topic"] = infos[0].name
    return heard


def _robot(answers: Answers) -> dict[str, Any]:
    robot = answers.robot or answers.robot_voice
    if robot is None:
        return {}
    found: dict[str, Any] = {"robot_speech_topic": robot.name}
    if answers.robot and answers.robot_voice:
        found["robot_speaking_topic"] = answers.robot_voice.name
    if robot.type_name:
        found["robot_speech_type"] = robot.type_name
    if robot.type_name == ROBOT_SPEECH_TYPE and not robot.is_reliable:
        found["qos_overrides"] = {robot.name: {"subscription": {"reliability": "best_effort"}}}
    return found


def _robot_remark(robot: TopicCandidate | None) -> str:
    if robot is None:
        return "# Nothing was found of the robot's own speech, so nothing it says is flagged: set robot_speech_topic."
    return f"# {robot.name}: {robot.remark}"
