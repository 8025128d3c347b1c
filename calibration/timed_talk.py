"""Turns with times as the monitor's records, with the silence marks of ears that miss nothing."""

from collections.abc import Sequence

from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_core.runtime.time import NS_PER_S
from norm_monitor.encounters.library import Truth
from norm_monitor.senses.speech.silence_marks import make_script_marks
from norm_monitor.windows.cutter import Entry

_TOPIC = "talk"
_MARK_EVERY_NS = NS_PER_S // 2


@record
class TimedTurn:
    """A turn and when it was spoken."""

    speaker_id: str  # empty for the robot
    text: str
    start_ns: int
    end_ns: int


def make_talk_records(turns: Sequence[TimedTurn], start_ns: int, end_ns: int) -> list[tuple[int, Entry]]:
    """Return the records of a talk by arrival, a person's turn as it ends; silence is marked from start to end."""
    entries: list[tuple[int, Entry]] = []
    utterances: list[Utterance] = []
    for index, turn in enumerate(turns):
        if turn.speaker_id:
            utterance = Utterance(
                stamp_ns=turn.start_ns,
                utterance_id=f"u{index}",
                speaker=Speaker.USER,
                speaker_id=turn.speaker_id,
                text=turn.text,
                start_ns=turn.start_ns,
                end_ns=turn.end_ns,
                source_topic=_TOPIC,
            )
            utterances.append(utterance)
            entries.append((turn.end_ns, utterance))
        else:
            entries += [
                (at_ns, RobotSpeech(stamp_ns=at_ns, speech_id=f"r{index}", state=edge, text=turn.text))
                for at_ns, edge in ((turn.start_ns, SpeechEdge.START), (turn.end_ns, SpeechEdge.STOP))
            ]
    entries += make_script_marks(utterances, start_ns, end_ns, _MARK_EVERY_NS, _TOPIC)
    return sorted(entries, key=lambda entry: (entry[0], not isinstance(entry[1], RobotSpeech)))


def make_unlabelled_truth(name: str, start_ns: int, end_ns: int) -> Truth:
    """Return the bounds of a talk without labels."""
    return Truth(encounter_id=name, language="en", seed=0, start_ns=start_ns, end_ns=end_ns, turns=(), events=())
