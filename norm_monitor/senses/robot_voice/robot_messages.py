"""Read messages about the robot's speech by their fields, because each robot has its own types."""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np

from norm_core.records.record import record
from norm_core.records.speech import SpeechContent
from norm_core.records.stamps import join_stamp
from norm_core.records.text_limits import MAX_SPEECH_CHARACTERS
from norm_monitor.senses.microphone.audio_message import decode, has_fields
from norm_monitor.senses.microphone.pcm import PcmFormat, SoundError

# Fields of a text to say, in the types of several robots.
_TEXT_FIELDS = ("input", "text", "say", "speech", "sentence", "utterance", "data")
_LOCALE_FIELDS = ("locale", "language", "lang_id")
# Fields that state whether the robot speaks.
_SPEAKING_FIELDS = ("data", "is_speaking", "speaking", "playing")
# Fields of types that carry a person's words.
_PERSON_FIELDS = ("utterance_id", "incremental")

# Markup that is not spoken: tags of SSML and of expressions, and NAOqi's \rspd=80\ and ^start(animation).
_MARKUP = re.compile(r"<[^<>]*>|\\\w+(?:=[^\\]*)?\\|\^\w+\([^()]*\)")

# A text with markup may be longer than the spoken words.
_MAX_MARKED_UP_CHARACTERS = 8 * MAX_SPEECH_CHARACTERS

# Values of sound_play's SoundRequest: of its field sound, and of its field command.
_SOUND_SAY = -3
_SOUND_ALL = -1
_COMMAND_STOP = 0
# Values of action_msgs/GoalStatus.
_RUNNING_STATES = {2, 3}
_ENDED_STATES = {4, 5, 6}

# An action's states, feedback and goals. ROS 2 publishes its goals only where service introspection is on.
_ACTION_TOPICS = ("_action/status", "_action/feedback", "_action/send_goal/_service_event")
# Types whose topics are worth trying as the robot's speech.
_LIKELY_TYPES = ("std_msgs/msg/String", "/ClosedCaption", "/SoundRequest", "/TTS_FeedbackMessage", "/RobotSpeech")


class NotRobotSpeechError(ValueError):
    """A message has none of the fields that identify robot speech."""


@record
class TextToSay:
    """A text that the robot is told to say, or says; an empty one stops its speech."""

    stamp_ns: int
    text: str
    locale: str = ""
    is_cut: bool = False


@record
class SpokenWord:
    """A word that the robot says now."""

    stamp_ns: int
    text: str
    voice_id: str


@record
class RobotVoiceState:
    """Whether one voice, such as that of a topic or an action's goal, speaks."""

    stamp_ns: int
    voice_id: str
    speaking: bool


RobotEvent = TextToSay | SpokenWord | RobotVoiceState


def read_robot_message(
    message: Any, arrival_ns: int, topic: str = "", speaker_ids: tuple[str, ...] = ()
) -> list[RobotEvent]:
    """Return the events in a message about the robot's speech. Raises NotRobotSpeechError for other types."""
    if any(hasattr(message, name) for name in _PERSON_FIELDS):
        raise NotRobotSpeechError(f"{type(message).__name__} carries a person's words; name a topic of robot speech")
    stamp_ns = _read_stamp_ns(message, arrival_ns)
    if has_fields(message, "status_list"):
        return list(_read_goal_states(message, arrival_ns))
    if has_fields(message, "info", "request", "response"):  # a service event of an action's goal
        goals = [getattr(request, "goal", request) for request in message.request]
        return [event for goal in goals for event in _read_command(goal, stamp_ns)]
    if has_fields(message, "feedback"):
        return _read_feedback(message, stamp_ns, topic)
    if speaker_ids and getattr(message, "speaker_id", speaker_ids[0]) not in speaker_ids:
        return []
    speaking = _read_flag(message)
    if speaking is not None:
        return [RobotVoiceState(stamp_ns=stamp_ns, voice_id=topic, speaking=speaking)]
    return _read_command(getattr(message, "goal", message), stamp_ns)


def _read_command(message: Any, stamp_ns: int) -> list[RobotEvent]:
    """Read a text to say, or a stop."""
    inner = getattr(message, "rawtext", getattr(message, "sound_request", message))  # pal_interaction_msgs, sound_play
    if has_fields(inner, "sound", "command", "arg"):
        return _read_sound_request(inner, stamp_ns)
    text = next((text for name in _TEXT_FIELDS if isinstance(text := getattr(inner, name, None), str)), None)
    if text is None:
        raise NotRobotSpeechError(f"{type(message).__name__} has none of the fields of a robot's speech")
    locale = next((str(getattr(inner, name)) for name in _LOCALE_FIELDS if hasattr(inner, name)), "")
    spoken = " ".join(_MARKUP.sub(" ", text[:_MAX_MARKED_UP_CHARACTERS]).split())
    is_cut = len(text) > _MAX_MARKED_UP_CHARACTERS or len(spoken) > MAX_SPEECH_CHARACTERS
    locale = locale[:MAX_SPEECH_CHARACTERS].replace("_", "-")
    return [TextToSay(stamp_ns=stamp_ns, text=spoken[:MAX_SPEECH_CHARACTERS], locale=locale, is_cut=is_cut)]


def _read_sound_request(message: Any, stamp_ns: int) -> list[RobotEvent]:
    """Read a text to say, or a stop, of sound_play."""
    if message.command == _COMMAND_STOP and message.sound in (_SOUND_SAY, _SOUND_ALL):
        return [TextToSay(stamp_ns=stamp_ns, text="")]
    if message.sound != _SOUND_SAY or message.command == _COMMAND_STOP:
        return []
    text = str(message.arg)
    is_cut = len(text) > MAX_SPEECH_CHARACTERS
    return [TextToSay(stamp_ns=stamp_ns, text=text[:MAX_SPEECH_CHARACTERS], is_cut=is_cut)]


def _read_goal_states(message: Any, arrival_ns: int) -> Iterator[RobotEvent]:
    """Yield the states of an action's goals: the end of one precedes the start of the next."""
    states = [(bytes(goal.goal_info.goal_id.uuid).hex(), goal.status) for goal in message.status_list]
    for speaking, matching_states in ((False, _ENDED_STATES), (True, _RUNNING_STATES)):
        for goal_id, state in states:
            if state in matching_states:
                yield RobotVoiceState(stamp_ns=arrival_ns, voice_id=goal_id, speaking=speaking)


def _read_feedback(message: Any, stamp_ns: int, topic: str) -> list[RobotEvent]:
    """Read an action's feedback; other feedback, such as progress, gives no event."""
    goal_id = getattr(message, "goal_id", None)
    voice_id = topic if goal_id is None else bytes(goal_id.uuid).hex()
    if hasattr(message.feedback, "audio"):
        raise NotRobotSpeechError(f"{type(message).__name__} carries sound")
    word = getattr(message.feedback, "word", None)
    speaking = _read_flag(message.feedback)
    if isinstance(word, str):  # tts_msgs/TTS
        return [SpokenWord(stamp_ns=stamp_ns, text=word, voice_id=voice_id)] if word.strip() else []
    return [] if speaking is None else [RobotVoiceState(stamp_ns=stamp_ns, voice_id=voice_id, speaking=speaking)]


def extract_sound(message: Any) -> Any:
    """Return the part of a message that may hold sound: some actions send robot speech as sound in their feedback."""
    return getattr(getattr(message, "feedback", None), "audio", message)


def _read_flag(message: Any) -> bool | None:
    """Return whether the robot speaks, if the message states it."""
    values = (getattr(message, name, None) for name in _SPEAKING_FIELDS)
    return next((bool(value) for value in values if isinstance(value, bool | np.bool_)), None)


def _read_stamp_ns(message: Any, arrival_ns: int) -> int:
    """Return the stamp of a message, or else its arrival."""
    if not hasattr(message, "header"):
        return arrival_ns
    return join_stamp(int(message.header.stamp.sec), int(message.header.stamp.nanosec)) or arrival_ns


def expand_topics(names: Iterable[str], present: Collection[str]) -> list[str]:
    """Replace the name of an action by those of its topics that are present. Other names stay."""
    topics: list[str] = []
    for name in names:
        action_topics = [topic for ending in _ACTION_TOPICS if (topic := f"{name}/{ending}") in present]
        topics += [name] if name in present or not action_topics else action_topics
    return topics


def is_likely_type(type_name: str) -> bool:
    """Whether topics of a type are often the robot's words."""
    return type_name.endswith(_LIKELY_TYPES)


def detect_speech_content(message: Any) -> SpeechContent:
    """Return what a type of message carries of robot speech. An empty message suffices."""
    try:
        events = read_robot_message(message, 0)
    except NotRobotSpeechError:
        try:
            decode(extract_sound(message), PcmFormat())
        except SoundError as error:
            return SpeechContent.NOTHING if error.fault == "audio_type_unknown" else SpeechContent.SOUND
        return SpeechContent.SOUND
    return SpeechContent.WORDS if any(isinstance(event, TextToSay) for event in events) else SpeechContent.TIMES
