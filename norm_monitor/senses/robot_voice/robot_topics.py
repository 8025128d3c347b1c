"""Which topics tell of a robot's speech."""

from collections.abc import Collection, Iterable
from typing import Any

from norm_core.records.speech import SpeechContent
from norm_monitor.senses.microphone.audio_message import decode
from norm_monitor.senses.microphone.pcm import PcmFormat, SoundError
from norm_monitor.senses.robot_voice.robot_messages import NotRobotSpeechError, TextToSay, read_robot_message, sound_in

# An action's states, feedback and goals. ROS 2 publishes its goals only where service introspection is on.
_ACTION_TOPICS = ("_action/status", "_action/feedback", "_action/send_goal/_service_event")
# Types whose topics are worth trying as the robot's speech.
_LIKELY_TYPES = ("std_msgs/msg/String", "/ClosedCaption", "/SoundRequest", "/TTS_FeedbackMessage", "/RobotSpeech")


def expand_topics(named: Iterable[str], present: Collection[str]) -> list[str]:
    """Replace the name of an action by its topics among those that are present; keep all other names."""
    found: list[str] = []
    for name in named:
        of_action = [topic for ending in _ACTION_TOPICS if (topic := f"{name}/{ending}") in present]
        found += [name] if name in present or not of_action else of_action
    return found


def is_likely_type(type_name: str) -> bool:
    """Whether topics of a type are often the robot's words."""
    return type_name.endswith(_LIKELY_TYPES)


def speech_content(message: Any) -> SpeechContent:
    """Return what a message's type tells of the robot's speech; the message may be empty."""
    try:
        events = read_robot_message(message, 0)
    except NotRobotSpeechError:
        try:
            decode(sound_in(message), PcmFormat())
        except SoundError as error:
            return SpeechContent.NOTHING if error.fault == "audio_type_unknown" else SpeechContent.SOUND
        return SpeechContent.SOUND
    return SpeechContent.WORDS if any(isinstance(event, TextToSay) for event in events) else SpeechContent.TIMES
