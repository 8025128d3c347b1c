"""Who spoke depends on stamps alone: whatever order things arrive in, as long as none is later than stated."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance, Word
from norm_core.runtime.time import NS_PER_MS, NS_PER_S
from norm_monitor.senses.microphone.audio_message import SoundChunk, read_sound_file
from norm_monitor.senses.robot_voice.robot_voice import RobotVoice
from norm_monitor.senses.speech.recognition import RecognizedSpeech
from norm_monitor.senses.speech.segmenter import AudioSegment
from tests.norm_monitor.senses.speech_path import CONFIG, START_NS, edge, edges_of, utterances
from tests.norm_monitor.senses.test_conversation import told

HERE = Path(__file__).parent
TENTH_NS = NS_PER_S // 10
SENTENCES = ("there are seven books", "no wait I want history", "the reading room closes at nine")


class Parrot:
    """Recognizes at once, the same words in every segment of the same length."""

    def recognize(self, segment: AudioSegment) -> RecognizedSpeech:
        texts = SENTENCES[len(segment.samples) // 512 % len(SENTENCES)].split()
        step_ns = (segment.end_ns - segment.start_ns) // len(texts)
        words = tuple(
            Word(text=text, start_ns=segment.start_ns + i * step_ns, end_ns=segment.start_ns + (i + 1) * step_ns)
            for i, text in enumerate(texts)
        )
        return RecognizedSpeech(
            text=" ".join(texts), locale="en", words=words, confidence=0.9, no_speech_probability=0.0
        )


@pytest.fixture(scope="module")
def sounds() -> list[SoundChunk]:
    chunks = [chunk.samples for chunk in read_sound_file(HERE / "mixtures.flac")]
    whole = np.concatenate(chunks)[: 24 * 16_000]
    return [
        SoundChunk(samples=whole[i : i + 1_600], rate_hz=16_000, stamp_ns=START_NS + i * NS_PER_S // 16_000)
        for i in range(0, len(whole), 1_600)
    ]


@pytest.fixture(scope="module")
def edges() -> list[RobotSpeech]:
    return edges_of(scene["robot"] for scene in told("mixtures.json")[:4] if "robot" in scene)


def merged(sounds: list[SoundChunk], arrivals: list[tuple[int, RobotSpeech]]) -> list[SoundChunk | RobotSpeech]:
    """Each edge goes after all the sound that ends by its arrival."""
    events: list[tuple[int, int, SoundChunk | RobotSpeech]] = [
        ((chunk.stamp_ns or 0) + TENTH_NS, 0, chunk) for chunk in sounds
    ]
    events += [(arrival_ns, 1 + i, edge) for i, (arrival_ns, edge) in enumerate(arrivals)]
    return [event for *_, event in sorted(events, key=lambda entry: entry[:2])]


@pytest.fixture(scope="module")
def told_first(sounds: list[SoundChunk], edges: list[RobotSpeech]) -> list[Utterance]:
    return utterances([*edges, *sounds], Parrot())


@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_utterances_are_the_same_for_any_order_within_the_lateness(
    data: st.DataObject, sounds: list[SoundChunk], edges: list[RobotSpeech], told_first: list[Utterance]
) -> None:
    latest_ms = CONFIG.robot_lateness_ms - 1
    lags_ms = data.draw(st.lists(st.integers(-20_000, latest_ms), min_size=len(edges), max_size=len(edges)))
    order = data.draw(st.permutations(range(len(edges))))
    arrivals = [(edges[i].stamp_ns + lags_ms[i] * NS_PER_MS, edges[i]) for i in order]
    assert utterances(merged(sounds, arrivals), Parrot()) == told_first


def test_late_robot_speech_leaves_the_speaker_unknown(sounds: list[SoundChunk], edges: list[RobotSpeech]) -> None:
    late = [(edge.stamp_ns + CONFIG.robot_lateness_ms * NS_PER_MS + TENTH_NS, edge) for edge in edges]
    heard = utterances(merged(sounds, late), Parrot())
    touched = [u for u in heard if u.late]
    assert touched
    assert {u.speaker for u in touched} == {Speaker.UNKNOWN}


EDGES = st.builds(
    edge,
    st.sampled_from(SpeechEdge),
    st.integers(0, 20).map(float),
    st.sampled_from(["", "hello"]),
    st.sampled_from("abc"),
)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), fed=st.lists(EDGES, max_size=12))
def test_the_robot_context_does_not_depend_on_the_order_of_edges(data: st.DataObject, fed: list[RobotSpeech]) -> None:
    first, other = RobotVoice(), RobotVoice()
    for robot_edge in fed:
        first.feed(robot_edge, None)
    for robot_edge in data.draw(st.permutations(fed)):
        other.feed(robot_edge, None)
    for at_s in range(0, 20, 3):
        about = first.find_context(START_NS + at_s * NS_PER_S, START_NS + (at_s + 2) * NS_PER_S)
        assert about == other.find_context(START_NS + at_s * NS_PER_S, START_NS + (at_s + 2) * NS_PER_S)
        assert all(turn.start_ns <= turn.end_ns <= turn.rings_until_ns for turn in about.turns)
        assert all(early.end_ns <= late.start_ns for early, late in zip(about.turns, about.turns[1:], strict=False))
        assert not about.late
