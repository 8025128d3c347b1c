"""Which published topics could be the camera, the microphone, the words of people and those of the robot."""

from collections.abc import Callable

from norm_core.records.record import record
from tactful_cli.up.inputs import AUDIO_NAMES, IMAGE_TYPES, ROBOT_SPEECH_TYPE
from tactful_cli.up.ros_tools import Survey, Topic

_ROBOT_WORDS = ("say", "tts", "speech", "speak", "robot", "caption")
_ROBOT_TYPES = (ROBOT_SPEECH_TYPE, "hri_actions_msgs/msg/ClosedCaption", "sound_play/msg/SoundRequest")
_OWN = "/tactful/"


@record
class TopicCandidate:
    """A topic or an action that may play a part, with its type; an action's type is left empty."""

    name: str
    type_name: str
    remark: str
    is_reliable: bool = True


def cameras(survey: Survey) -> list[TopicCandidate]:
    """List pictures, compressed ones first: raw ones are often lost."""
    order = tuple(IMAGE_TYPES.values())
    found = _of(survey, lambda topic, type_name: type_name in order and "depth" not in topic.name)
    return sorted(found, key=lambda each: order.index(each.type_name))


def microphones(survey: Survey) -> list[TopicCandidate]:
    """List sound; bytes of no stated kind count where their topic's name says so."""
    return _of(
        survey,
        lambda topic, type_name: (
            type_name.endswith(AUDIO_NAMES)
            or (type_name == "std_msgs/msg/UInt8MultiArray" and _names(topic.name, ("audio", "sound", "mic")))
        ),
    )


def recognisers(survey: Survey) -> list[TopicCandidate]:
    """List the texts of a recogniser of the robot's own."""
    return _of(survey, lambda _, type_name: type_name.endswith("/LiveSpeech"))


def robot_speech(survey: Survey) -> list[TopicCandidate]:
    """List what tells what the robot says: known types first, then strings by their names, then actions."""
    known = _of(survey, lambda _, type_name: type_name in _ROBOT_TYPES)
    strings = _of(
        survey,
        lambda topic, type_name: type_name == "std_msgs/msg/String" and _names(topic.name, _ROBOT_WORDS),
    )
    actions = [
        TopicCandidate(name=name, type_name="", remark=f"action {', '.join(types)}")
        for name, types in survey.actions.items()
        if _names(name, ("say", "tts", "speak", "speech")) and not name.startswith(_OWN)
    ]
    return sorted(known, key=lambda each: _ROBOT_TYPES.index(each.type_name)) + strings + actions


def people(survey: Survey) -> list[TopicCandidate]:
    """List topics of tracked people as REP-155 names them."""
    return _of(
        survey,
        lambda topic, type_name: type_name.endswith("/IdsList") and topic.name.endswith("/persons/tracked"),
    )


def _of(survey: Survey, fits: Callable[[Topic, str], bool]) -> list[TopicCandidate]:
    return [
        TopicCandidate(name=topic.name, type_name=type_name, remark=_remark(topic), is_reliable=topic.reliable)
        for topic in survey.topics
        for type_name in topic.types
        if fits(topic, type_name) and not _is_own(topic, type_name)
    ]


def _is_own(topic: Topic, type_name: str) -> bool:
    """Whether Tactful itself publishes a topic; the robot's own speech under this name may come from a robot."""
    return topic.name.startswith(_OWN) and type_name != ROBOT_SPEECH_TYPE


def _remark(topic: Topic) -> str:
    rate = "type not installed here" if topic.rate_hz is None else f"{topic.rate_hz:.1f} a second"
    return f"{', '.join(topic.types)}, {rate}, {'reliable' if topic.reliable else 'best effort'}"


def _names(name: str, words: tuple[str, ...]) -> bool:
    return any(word in name.lower() for word in words)
