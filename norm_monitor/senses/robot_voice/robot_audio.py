"""The audio output of the robot: when its voice speaks, and the segments to transcribe."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from norm_core.engines.providers import OnFault
from norm_core.runtime.time import NS_PER_MS, NS_PER_S
from norm_monitor.senses.microphone.pcm import SoundError
from norm_monitor.senses.robot_voice.robot_messages import NotRobotSpeechError, RobotVoiceState, extract_sound
from norm_monitor.senses.speech.audio_front_end import AudioFrontEnd, HearingConfig, SpeechSegment

# The longest delay of a start or stop behind the microphone: a pause confirms a stop, whose segment then must come.
LATENESS_NS = 1500 * NS_PER_MS
# Most robots send sound only while they speak. Without any for this long, the speech has ended.
_MAX_PAUSE_NS = 1 * NS_PER_S


class RobotAudio:
    """A finder of speech in the sound that the robot plays. Messages come in order of arrival."""

    def __init__(self, config: HearingConfig, topic: str, on_fault: OnFault = lambda fault: None) -> None:
        config = config.model_copy(update={"partial_every_s": 0.0})
        self._front_end = AudioFrontEnd(config, on_fault, comes_ahead=True)
        self._topic = topic
        self._arrived_ns: int | None = None
        self._onset_ns: int | None = None

    def take(self, message: Any, arrival_ns: int) -> list[RobotVoiceState | SpeechSegment]:
        """Return what a message completes.

        Raises SoundError for unusable sound, and NotRobotSpeechError for a message without sound.
        """
        try:
            segments = self._front_end.take_audio(extract_sound(message), arrival_ns)
        except SoundError as error:
            if error.fault == "audio_type_unknown":
                raise NotRobotSpeechError(
                    f"{type(message).__name__} has none of the fields of a robot's speech or of sound"
                ) from error
            raise
        self._arrived_ns = arrival_ns
        states = self._find_states(segments)
        onset_ns = self._front_end.segmenter.onset_ns
        if onset_ns is not None and onset_ns != self._onset_ns:
            self._onset_ns = onset_ns
            states.append(self._make_state(onset_ns, speaking=True))
        return states

    def advance(self, now_ns: int) -> list[RobotVoiceState | SpeechSegment]:
        """Return the end of the speech, if no sound came for a while."""
        is_over = self._arrived_ns is not None and now_ns > self._arrived_ns + _MAX_PAUSE_NS
        return self.flush() if is_over else []

    def flush(self) -> list[RobotVoiceState | SpeechSegment]:
        """End the stream and any speech in progress."""
        self._arrived_ns = None
        return self._find_states(self._front_end.flush())

    def _find_states(self, segments: Iterable[SpeechSegment]) -> list[RobotVoiceState | SpeechSegment]:
        states: list[RobotVoiceState | SpeechSegment] = []
        for speech in segments:
            segment = speech.segment
            if segment.final:
                if segment.start_ns != self._onset_ns:  # the whole speech came in one message
                    states.append(self._make_state(segment.start_ns, speaking=True))
                states.append(self._make_state(segment.end_ns, speaking=False))
            states.append(replace(speech, is_robot_output=True))
        return states

    def _make_state(self, stamp_ns: int, *, speaking: bool) -> RobotVoiceState:
        return RobotVoiceState(stamp_ns=stamp_ns, voice_id=self._topic, speaking=speaking)
