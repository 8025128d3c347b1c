"""Choose which published topic plays which part for `up --init`, and write the profile."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import yaml

from norm_core.records.record import record
from norm_core.records.topics import full_topic
from norm_core.runtime.program import PROGRAM
from norm_monitor.judge.deployment_context import DeploymentContext
from tactful_cli.up.input_check import (
    BOOL_TYPE,
    IMAGE_TYPES,
    ROBOT_SPEECH_TYPE,
    STRING_TYPE,
    describe,
    is_microphone,
)
from tactful_cli.up.profile import Survey, Topic

# Parts of names of topics with robot speech.
_ROBOT_WORDS = ("say", "tts", "speech", "speak", "caption")
# Parts of names of topics about people.
_PEOPLE_WORDS = ("transcri", "asr", "stt", "speech_to_text", "recogni", "heard", "user", "person", "people", "human")
# Parts of names of Bools that tell whether somebody speaks.
_VOICE_WORDS = ("speak", "talk", "voice", "vad", "say", "tts", "speech")
# Parts of names of actions by which a robot speaks.
_ACTION_WORDS = ("say", "tts", "speak", "speech")
# Types of robot speech, the best first.
_ROBOT_TYPES = (ROBOT_SPEECH_TYPE, "hri_actions_msgs/msg/ClosedCaption", "sound_play/msg/SoundRequest")
_OWN_PREFIX = full_topic("")
# Ends of topics of REP-155.
_TRACKED_VOICES = "/voices/tracked"
_TRACKED_PEOPLE = "/persons/tracked"
_SILENCE_REMARK = (
    "# A robot that talks with people face to face: consider fusion.answer_within_s: 4 (docs/your_robot.md, step 5)."
)
_NO_WORDS_REMARK = (
    "# No topic has the words of people: set audio_topic and audio_type, or words_from, words_topic and words_type."
)
_NO_ROBOT_REMARK = "# No topic has robot speech, so nothing that the robot says is flagged: set robot_speech_topic."


@record
class TopicCandidate:
    """A topic or an action that may play a part. The type of an action is left empty.

    `is_likely` is true where its type or its name says that it plays the part.
    """

    name: str
    type_name: str
    remark: str
    is_reliable: bool = True
    is_likely: bool = True


def list_cameras(survey: Survey) -> list[TopicCandidate]:
    """List topics of pictures, compressed ones first, because raw ones are often lost."""
    order = tuple(IMAGE_TYPES.values())
    cameras_on_graph = _list_topics(survey, lambda name, type_name: type_name in order and "depth" not in name)
    return sorted(cameras_on_graph, key=lambda topic: order.index(topic.type_name))


def list_recognizers(survey: Survey) -> list[TopicCandidate]:
    """List topics of a speech recognizer: its own type first, then strings, the likely ones first."""
    topics = _list_topics(survey, lambda _, type_name: type_name.endswith("/LiveSpeech"))
    return topics + _list_topics(survey, _is_string, _is_about_people)


def list_robot_speech(survey: Survey) -> list[TopicCandidate]:
    """List topics of robot speech: known types first, then actions and strings, the likely ones first."""
    topics = _list_topics(survey, lambda _, type_name: type_name in _ROBOT_TYPES)
    actions = [
        TopicCandidate(name=name, type_name="", remark=f"action {', '.join(types)}")
        for name, types in survey.actions.items()
        if _contains_any(name, _ACTION_WORDS) and not name.startswith(_OWN_PREFIX)
    ]
    strings = _list_topics(
        survey, _is_string, lambda name: _contains_any(name, _ROBOT_WORDS) and not _is_about_people(name)
    )
    others = sorted(strings + actions, key=lambda topic: not topic.is_likely)
    return sorted(topics, key=lambda topic: _ROBOT_TYPES.index(topic.type_name)) + others


def list_people_voices(survey: Survey, recognizer: TopicCandidate) -> list[TopicCandidate]:
    """List Bools that may be true while people speak, first the one beside a LiveSpeech topic (REP-155)."""
    own = f"{recognizer.name.rpartition('/')[0]}/is_speaking" if recognizer.type_name != STRING_TYPE else ""
    topics = _list_topics(
        survey, _is_bool, lambda name: name == own or (_contains_any(name, _VOICE_WORDS) and _is_about_people(name))
    )
    return sorted(topics, key=lambda topic: topic.name != own)


def list_robot_voices(survey: Survey) -> list[TopicCandidate]:
    """List Bools that may be true while the robot speaks."""
    return _list_topics(survey, _is_bool, lambda name: _contains_any(name, _VOICE_WORDS) and not _is_about_people(name))


def list_tracked(survey: Survey, ending: str) -> list[TopicCandidate]:
    """List topics of tracked voices or people, which REP-155 names."""
    return _list_topics(survey, lambda name, type_name: type_name.endswith("/IdsList") and name.endswith(ending))


def _list_topics(
    survey: Survey, fits: Callable[[str, str], bool], is_likely: Callable[[str], bool] = lambda _: True
) -> list[TopicCandidate]:
    """List the topics of other nodes whose name and type fit, the likely ones first."""
    candidates = [
        TopicCandidate(
            name=topic.name,
            type_name=type_name,
            remark=describe(topic),
            is_reliable=topic.reliable,
            is_likely=is_likely(topic.name),
        )
        for topic in survey.topics
        for type_name in topic.types
        if fits(topic.name, type_name) and not _is_own(topic, type_name)
    ]
    return sorted(candidates, key=lambda candidate: not candidate.is_likely)


def _is_own(topic: Topic, type_name: str) -> bool:
    """Decide whether Tactful itself publishes a topic. A robot may publish its speech under Tactful's name."""
    if topic.publishers:
        return all(_OWN_PREFIX in node for node in topic.publishers)
    return topic.name.startswith(_OWN_PREFIX) and type_name != ROBOT_SPEECH_TYPE


def _is_string(_: str, type_name: str) -> bool:
    return type_name == STRING_TYPE


def _is_bool(_: str, type_name: str) -> bool:
    return type_name == BOOL_TYPE


def _is_about_people(name: str) -> bool:
    return _contains_any(name, _PEOPLE_WORDS)


def _contains_any(name: str, words: tuple[str, ...]) -> bool:
    """Decide whether a name contains one of the words, in any case."""
    return any(word in name.lower() for word in words)


@record
class InitChoices:
    """The topic or action of each part; None where there is none."""

    camera: TopicCandidate | None
    microphone: TopicCandidate | None
    voices: TopicCandidate | None
    recognizer: TopicCandidate | None
    people_voice: TopicCandidate | None
    robot: TopicCandidate | None
    robot_voice: TopicCandidate | None
    people: TopicCandidate | None
    context: DeploymentContext

    @property
    def topics(self) -> tuple[TopicCandidate, ...]:
        """The topics and actions that play a part."""
        parts = [getattr(self, field.name) for field in fields(self)]
        return tuple(part for part in parts if isinstance(part, TopicCandidate))


def choose_parts(survey: Survey, context: DeploymentContext) -> InitChoices:
    """Choose the topic of each part by its type or its name. Each topic plays at most one part."""
    used_names: set[str] = set()

    def choose(candidates: Sequence[TopicCandidate]) -> TopicCandidate | None:
        likely = (candidate for candidate in candidates if candidate.is_likely)
        chosen = next((candidate for candidate in likely if candidate.name not in used_names), None)
        if chosen:
            used_names.add(chosen.name)
        return chosen

    voices = choose(list_tracked(survey, _TRACKED_VOICES))
    recognizer = None if voices else choose(list_recognizers(survey))
    people_voice = choose(list_people_voices(survey, recognizer)) if recognizer else None
    microphone = None if voices or recognizer else choose(_list_topics(survey, is_microphone))
    robot = choose(list_robot_speech(survey))
    has_times = robot is not None and robot.type_name == ROBOT_SPEECH_TYPE
    return InitChoices(
        voices=voices,
        recognizer=recognizer,
        people_voice=people_voice,
        microphone=microphone,
        robot=robot,
        robot_voice=None if has_times else choose(list_robot_voices(survey)),
        camera=choose(list_cameras(survey)),
        people=choose(list_tracked(survey, _TRACKED_PEOPLE)),
        context=context,
    )


def list_unused(choices: InitChoices, survey: Survey) -> list[TopicCandidate]:
    """List the topics that could play a part and do not."""
    parts = (
        list_tracked(survey, _TRACKED_VOICES),
        list_recognizers(survey),
        list_robot_speech(survey),
        list_robot_voices(survey),
        _list_topics(survey, is_microphone),
        list_cameras(survey),
        list_tracked(survey, _TRACKED_PEOPLE),
    )
    used_names = {topic.name for topic in choices.topics}
    unused_topics = {topic.name: topic for part in parts for topic in part if topic.name not in used_names}
    # Each tracked voice has topics of its own below this name. No topic begins with "//".
    voices = choices.voices.name.removesuffix("tracked") if choices.voices else "//"
    return [candidate for name, candidate in unused_topics.items() if not name.startswith(voices)]


def build_profile(choices: InitChoices, survey: Survey) -> dict[str, dict[str, Any]]:
    """Build the parameters of each node that the choices need."""
    nodes: dict[str, dict[str, Any]] = {}
    if choices.camera:
        transport = next(name for name, type_name in IMAGE_TYPES.items() if type_name == choices.camera.type_name)
        nodes["camera"] = {"topic": choices.camera.name, "transport": transport}
    if choices.people:
        nodes["people"] = {"humans": choices.people.name.removesuffix(_TRACKED_PEOPLE)}
        # The camera would count each tracked person a second time.
        nodes.get("camera", {})["faces"] = False
    nodes["ears"] = {**_set_words(choices, survey), **_set_robot_speech(choices)}
    sources = ["utterances"]
    sources += ["frames"] if choices.camera else []
    sources += ["presence"] if choices.camera or choices.people else []
    nodes["monitor"] = {
        "windows": {"sources": sorted(sources)},
        "judge": {"deployment_context": choices.context.value},
    }
    nodes["selector"] = {}
    return nodes


def format_profile(nodes: Mapping[str, Any], choices: InitChoices, survey: Survey) -> str:
    """Format the profile as YAML, with remarks on the topics."""
    lines = [f"# Written by {PROGRAM} up --init from the topics that were published then."]
    remarks = {
        "camera": choices.camera,
        "ears": choices.voices or choices.recognizer or choices.microphone,
        "people": choices.people,
    }
    for node, parameters in nodes.items():
        lines.append("")
        topic = remarks.get(node)
        if topic:
            lines.append(f"# {topic.name}: {topic.remark}")
        if node == "ears":
            if not topic:
                lines.append(_NO_WORDS_REMARK)
            robot = choices.robot or choices.robot_voice
            lines.append(f"# {robot.name}: {robot.remark}" if robot else _NO_ROBOT_REMARK)
        if node == "monitor":
            lines.append(_SILENCE_REMARK)
        section = {full_topic(node): {"ros__parameters": parameters}}
        lines.append(yaml.safe_dump(section, sort_keys=False, allow_unicode=True).rstrip("\n"))
    if others := list_unused(choices, survey):
        lines += ["", "# Not used:", *(f"# {other.name}: {other.remark}" for other in others)]
    return "\n".join(lines) + "\n"


def _set_words(choices: InitChoices, survey: Survey) -> dict[str, Any]:
    """Build the parameters of ears for the words of people."""
    if choices.voices:
        return {"words_from": "voices", "humans": choices.voices.name.removesuffix(_TRACKED_VOICES)}
    if choices.recognizer:
        return {
            "words_from": "topic",
            "words_topic": choices.recognizer.name,
            "words_type": choices.recognizer.type_name,
            "is_speaking_topic": choices.people_voice.name if choices.people_voice else "",
        }
    if not choices.microphone:
        return {}
    parameters = {"audio_topic": choices.microphone.name, "audio_type": choices.microphone.type_name}
    infos = [topic for topic in survey.topics if topic.types == ("audio_common_msgs/msg/AudioInfo",)]
    if infos:
        parameters["audio_info_topic"] = infos[0].name
    return parameters


def _set_robot_speech(choices: InitChoices) -> dict[str, Any]:
    """Build the parameters of ears for robot speech."""
    robot = choices.robot or choices.robot_voice
    if robot is None:
        return {}
    parameters: dict[str, Any] = {"robot_speech_topic": robot.name}
    if choices.robot and choices.robot_voice:
        parameters["robot_speaking_topic"] = choices.robot_voice.name
    if robot.type_name:
        parameters["robot_speech_type"] = robot.type_name
    if robot.type_name == ROBOT_SPEECH_TYPE and not robot.is_reliable:
        parameters["qos_overrides"] = {robot.name: {"subscription": {"reliability": "best_effort"}}}
    return parameters
