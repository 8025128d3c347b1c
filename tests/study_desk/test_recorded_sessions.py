"""What a session's recording shows of the robot's words, and when its retention ends."""

import pytest

from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_core.runtime.time import NS_PER_S
from norm_monitor.session_log.recording import replace_echo
from norm_monitor.session_log.schema import Entry, Kind
from study_desk.study.retention import DAY_NS, find_retention
from tests.study_session import START_NS, info


def make_robot_utterance(start_s: float, text: str) -> Utterance:
    start_ns = START_NS + round(start_s * NS_PER_S)
    return Utterance(
        stamp_ns=start_ns, utterance_id=text, speaker=Speaker.ROBOT, text=text, start_ns=start_ns,
        end_ns=start_ns + NS_PER_S,
    )  # fmt: skip


def make_edge(state: SpeechEdge, at_s: float, speech_id: str, text: str) -> RobotSpeech:
    return RobotSpeech(stamp_ns=START_NS + round(at_s * NS_PER_S), speech_id=speech_id, state=state, text=text)


def test_stated_words_of_the_robot_replace_its_echo() -> None:
    edges = [
        make_edge(SpeechEdge.START, 1, "s1", "the two of you"), make_edge(SpeechEdge.STOP, 2.5, "s1", "the two of you"),
        make_edge(SpeechEdge.START, 6, "s2", ""), make_edge(SpeechEdge.STOP, 7, "s2", ""),
    ]  # fmt: skip
    heard = [make_robot_utterance(1.2, "echo"), make_robot_utterance(6.1, "words without a text")]
    utterances = replace_echo(heard, edges, START_NS + 9 * NS_PER_S)
    assert [utterance.text for utterance in utterances] == ["the two of you", "words without a text"]


@pytest.mark.parametrize(("end_ns", "counts_from_ns"), [(START_NS, START_NS), (0, START_NS + DAY_NS)])
def test_retention_counts_from_the_recording(end_ns: int, counts_from_ns: int) -> None:
    """A log may be written a day after its bag. A simulated clock shows no day, so that of writing counts."""
    record = info(end_ns=end_ns, retention_days=30)
    first = Entry(seq=0, kind=Kind.SESSION, wall_ns=START_NS + DAY_NS, ros_ns=0, record=record)
    retention = find_retention([first])
    assert retention is not None
    assert retention.end_ns == counts_from_ns + 30 * DAY_NS
