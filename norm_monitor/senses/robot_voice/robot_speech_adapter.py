"""Convert other message types for robot speech to starts and stops."""

from typing import Any

from norm_core.records.speech import RobotSpeech, SpeechEdge
from norm_core.runtime.time import NS_PER_S, join_stamp

# Without an end event, estimate the end: people and synthesizers say about this many characters per second.
_SIGNS_PER_S, _LEAST_S = 14.0, 0.6
_SIGNS_PER_S_DENSE = 4.5  # of Chinese and Japanese

_SOUND_SAY, _SOUND_STOP, _SOUND_ALL = -3, 0, -1


class NotRobotSpeechError(ValueError):
    """A message has none of the fields that identify robot speech."""


def estimate_duration_ns(text: str) -> int:
    """Estimate how long a text takes to say, in nanoseconds."""
    dense = sum(1 for sign in text if "\u3040" <= sign <= "\u9fff")
    return round(max(_LEAST_S, dense / _SIGNS_PER_S_DENSE + (len(text) - dense) / _SIGNS_PER_S) * NS_PER_S)


class RobotSpeechAdapter:
    """Convert one topic's messages, in order, to starts and stops; estimate a missing stop.

    A RobotSpeech message passes unchanged.
    """

    def __init__(self, robot_speaker_ids: tuple[str, ...] = ()) -> None:
        self._robot_speaker_ids = robot_speaker_ids
        self._current: tuple[str, int] | None = None  # the current speech and its estimated end

    def feed(self, message: Any, arrival_ns: int) -> list[RobotSpeech]:
        """Return the starts and stops in a message; the stamp of an estimated stop may be in the future."""
        if isinstance(message, RobotSpeech):
            return [message]
        stamp_ns = _stamp_ns(message, arrival_ns)
        if _has(message, "speaker_id", "text"):  # ClosedCaption
            is_own = not self._robot_speaker_ids or message.speaker_id in self._robot_speaker_ids
            return self._say(str(message.text), str(getattr(message, "locale", "")), stamp_ns) if is_own else []
        if _has(message, "sound", "command", "arg"):  # sound_play's SoundRequest
            return self._sound(message, stamp_ns)
        goal = getattr(message, "goal", message)
        if _has(goal, "input", "locale"):  # tts_msgs/TTS
            return self._say(str(goal.input), str(goal.locale).replace("_", "-"), stamp_ns)
        if _has(goal, "rawtext"):  # the older pal_interaction TTS
            return self._say(str(goal.rawtext.text), str(goal.rawtext.lang_id).replace("_", "-"), stamp_ns)
        if _has(message, "data") and isinstance(message.data, str):  # NAO's /speech
            return self._say(message.data, "", stamp_ns)
        raise NotRobotSpeechError(f"{type(message).__name__} has none of the fields of a robot's speech")

    def _sound(self, message: Any, stamp_ns: int) -> list[RobotSpeech]:
        if message.command == _SOUND_STOP and message.sound in (_SOUND_SAY, _SOUND_ALL):
            return self._cut_short(stamp_ns)
        if message.sound != _SOUND_SAY or message.command == _SOUND_STOP:
            return []
        return self._say(str(message.arg), "", stamp_ns)

    def _say(self, text: str, locale: str, stamp_ns: int) -> list[RobotSpeech]:
        if not text.strip():
            return self._cut_short(stamp_ns)
        edges = self._cut_short(stamp_ns)
        speech_id, end_ns = f"said-{stamp_ns}", stamp_ns + estimate_duration_ns(text)
        self._current = (speech_id, end_ns)
        for edge_ns, state in ((stamp_ns, SpeechEdge.START), (end_ns, SpeechEdge.STOP)):
            edge = RobotSpeech(
                stamp_ns=edge_ns, speech_id=speech_id, state=state, text=text, locale=locale, estimated=True
            )
            edges.append(edge)
        return edges

    def _cut_short(self, stamp_ns: int) -> list[RobotSpeech]:
        current, self._current = self._current, None
        if current is None or current[1] <= stamp_ns:
            return []
        return [RobotSpeech(stamp_ns=stamp_ns, speech_id=current[0], state=SpeechEdge.STOP, estimated=True)]


def _has(message: Any, *names: str) -> bool:
    return all(hasattr(message, name) for name in names)


def _stamp_ns(message: Any, arrival_ns: int) -> int:
    if not hasattr(message, "header"):
        return arrival_ns
    return join_stamp(int(message.header.stamp.sec), int(message.header.stamp.nanosec)) or arrival_ns
