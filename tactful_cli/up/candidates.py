"""Which published topics could be the camera, the microphone, the words of people and those of the robot."""

from collections.abc import Callable

from norm_core.records.record import record
from tactful_cli.up.input_check import describe
from tactful_cli.up.inputs import BOOL_TYPE, IMAGE_TYPES, ROBOT_SPEECH_TYPE, STRING_TYPE, is_microphone
from tactful_cli.up.ros_tools import Survey, Topic

_ROBOT_WORDS = ("say", "tts", "speech", "speak", "caption")
_PEOPLE_WORDS = ("transcri", "asr", "stt", "speech_to_text", "recogni", "heard", "user", "person", "people", "human")
_VOICE_WORDS = ("speak", "talk", "voice", "vad", "say", "tts", "speech")
_ROBOT_TYPES = (ROBOT_SPEECH_TYPE, "hri_actions_msgs/msg/ClosedCaption", "sound_play/msg/SoundRequest")
_OWN = "/tactful/"


@record
class TopicCandidate:
    """A topic or an action that may play a part, with its type; an action's type is left empty."""

    name: str
    type_name: str
    remark: str
    is_reliable: bool = True
    is_likely: bool = True  # whether its type or its name says that it plays the part


def cameras(survey: Survey) -> list[TopicCandidate]:
    """List pictures, compressed ones first: raw ones are often lost."""
    order = tuple(IMAGE_TYPES.values())
    found = _of(survey, lambda topic, type_name: type_name in order and "depth" not in topic.name)
    return sorted(found, key=lambda each: order.index(each.type_name))


def microphones(survey: Survey) -> list[TopicCandidate]:
    """List sound; numbers of no stated kind count where their topic's name says so."""
    return _of(survey, lambda topic, type_name: is_microphone(topic.name, type_name))


def recognisers(survey: Survey) -> list[TopicCandidate]:
    """List the texts of a recogniser of the robot's own: its type first, then strings, the likely ones first."""
    known = _of(survey, lambda _, type_name: type_name.endswith("/LiveSpeech"))
    return known + _likely_first(_of(survey, _is_string, _is_about_people))


def robot_speech(survey: Survey) -> list[TopicCandidate]:
    """List what tells what the robot says: known types first, then actions, then strings, the likely ones first."""
    known = _of(survey, lambda _, type_name: type_name in _ROBOT_TYPES)
    actions = [
        TopicCandidate(name=name, type_name="", remark=f"action {', '.join(types)}")
        for name, types in survey.actions.items()
        if _names(name, ("say", "tts", "speak", "speech")) and not name.startswith(_OWN)
    ]
    strings = _of(survey, _is_string, lambda name: _names(name, _ROBOT_WORDS) and not _is_about_people(name))
    return sorted(known, key=lambda each: _ROBOT_TYPES.index(each.type_name)) + _likely_first(strings + actions)


def people_voices(survey: Survey, recogniser: TopicCandidate) -> list[TopicCandidate]:
    """List Bools that may be true while people speak, first that of a LiveSpeech's own voice (REP-155)."""
    own = f"{recogniser.name.rpartition('/')[0]}/is_speaking" if recogniser.type_name != STRING_TYPE else ""
    found = _of(survey, _is_bool, lambda name: name == own or (_names(name, _VOICE_WORDS) and _is_about_people(name)))
    return sorted(found, key=lambda each: (each.name != own, not each.is_likely))


def robot_voices(survey: Survey) -> list[TopicCandidate]:
    """List Bools that may be true while the robot speaks."""
    return _likely_first(_of(survey, _is_bool, lambda name: _names(name, _VOICE_WORDS) and not _is_about_people(name)))


def people(survey: Survey) -> list[TopicCandidate]:
    """List topics of tracked people as REP-155 names them."""
    return _of(
        survey,
        lambda topic, type_name: type_name.endswith("/IdsList") and topic.name.endswith("/persons/tracked"),
    )


def _of(
    survey: Survey, fits: Callable[[Topic, str], bool], is_likely: Callable[[str], bool] = lambda _: True
) -> list[TopicCandidate]:
    return [
        TopicCandidate(
            name=topic.name,
            type_name=type_name,
            remark=describe(topic),
            is_reliable=topic.reliable,
            is_likely=is_likely(topic.name),
        )
        for topic in survey.topics
        for type_name in topic.types
        if fits(topic, type_name) and not _is_own(topic, type_name)
    ]


def _likely_first(candidates: list[TopicCandidate]) -> list[TopicCandidate]:
    return sorted(candidates, key=lambda each: not each.is_likely)


def _is_own(topic: Topic, type_name: str) -> bool:
    """Whether Tactful itself publishes a topic; the robot's own speech under this name may come from a robot."""
    if topic.publishers:
        return all(_OWN in node for node in topic.publishers)
    return topic.name.startswith(_OWN) and type_name != ROBOT_SPEECH_TYPE


def _is_string(_: Topic, type_name: str) -> bool:
    return type_name == STRING_TYPE


def _is_bool(_: Topic, type_name: str) -> bool:
    return type_name == BOOL_TYPE


def _is_about_people(name: str) -> bool:
    return _names(name, _PEOPLE_WORDS)


def _names(name: str, words: tuple[str, ...]) -> bool:
    return any(word in name.lower() for word in words)
