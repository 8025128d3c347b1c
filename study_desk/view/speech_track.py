"""Who said what, from heard utterances and from what the robot states of its own speech."""

from collections import deque

from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from study_desk.report.page_items import Item, VoiceNumbers, ms_since, speech_item

RECENT_TURNS = 8  # of the robot, which its heard words may repeat


class SpeechTrack:
    """Merge utterances with the robot's own words."""

    def __init__(self) -> None:
        self._turns: deque[Item] = deque(maxlen=RECENT_TURNS)
        self._voices = VoiceNumbers()

    def take_utterance(self, said: Utterance, start_ns: int) -> Item | None:
        """Return what was heard, or None where the robot itself stated these words."""
        item = speech_item(said, start_ns, self._voices)
        own = [turn for turn in self._turns if turn["start"] < item["end"] and turn["end"] > item["start"]]
        return None if said.speaker is Speaker.ROBOT and any(turn["text"] for turn in own) else item

    def take_robot_speech(self, speech: RobotSpeech, start_ns: int) -> Item | None:
        """Return the robot's turn that starts or stops; None while its words are unknown."""
        at = ms_since(start_ns, speech.stamp_ns)
        if speech.state is SpeechEdge.START:
            turn: Item = {"id": speech.speech_id or f"robot {at}", "who": "robot", "start": at, "end": at}
            self._turns.append(turn | {"text": speech.text, "locale": speech.locale})
        elif self._turns:
            turn = self._turns[-1]
            self._turns[-1] = turn | {"end": max(at, turn["start"]), "text": turn["text"] or speech.text}
        return dict(self._turns[-1]) if self._turns and self._turns[-1]["text"] else None
