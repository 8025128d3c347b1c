"""Who speaks, and who is there."""

from collections.abc import Iterator

from norm_core.records.presence import Presence, PresenceState
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_core.runtime.wording import count_of
from tactful_cli.watch.rows import Tone, WatchRow

_NAMES = {Speaker.ROBOT: "robot", Speaker.USER: "person", Speaker.UNKNOWN: "somebody"}


class SpeechView:
    """What was said last, what is being said, and who is before the robot."""

    def __init__(self) -> None:
        self.partial = ""
        self.robot_speaks = False
        self.people = ""
        self._robot_text = ""

    def take_utterance(self, utterance: Utterance) -> Iterator[WatchRow]:
        """Take words; those that may still change are only kept."""
        if not utterance.final:
            if utterance.text:
                self.partial = f"{_NAMES[utterance.speaker]}: {utterance.text}"
            return
        self.partial = ""
        is_known = utterance.speaker is Speaker.ROBOT and bool(self._robot_text)
        if not is_known:  # what the microphone made of the robot's own words is told already, and better
            yield WatchRow(label=_NAMES[utterance.speaker], text=utterance.text, tone=Tone.SPEECH)

    def take_robot_speech(self, speech: RobotSpeech) -> Iterator[WatchRow]:
        """Take the start or the stop of the robot's speech. Its words can come with either."""
        self.robot_speaks = speech.state is SpeechEdge.START
        if speech.text and not (speech.state is SpeechEdge.STOP and self._robot_text == speech.text):
            yield WatchRow(label="robot", text=speech.text)
        if speech.text or speech.state is SpeechEdge.START:
            self._robot_text = speech.text

    def take_presence(self, presence: Presence) -> Iterator[WatchRow]:
        """Take who is there. Somebody out of sight for a moment is no news."""
        if presence.state is PresenceState.LOST:
            return
        number = len(presence.persons) or len(presence.faces)
        people = count_of(number, "person", "people") if number else presence.state.value
        if people != self.people:
            self.people = people
            yield WatchRow(label="presence", text=people)
