"""Generated bags: the same for a seed, without a word of the truth, and readable by the senses."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.bags.reader import BagReader
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.presence import PresenceState
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_core.records.window import gather_window
from norm_core.runtime.time import NS_PER_S
from norm_monitor.encounters.encounter import Encounter, ScriptedPerson, ScriptedTurn
from norm_monitor.encounters.generate import START_NS, GenerationConfig, generate, records
from norm_monitor.encounters.library import find, read, read_truth, shipped
from norm_monitor.encounters.timeline import MAX_JITTER, Timeline, lay_out
from norm_monitor.senses.microphone.audio_message import decode
from norm_monitor.senses.microphone.pcm import PcmFormat
from tests.norm_core.bags.bag_files import read as messages

STATED = PcmFormat(sample_format="s16le", rate_hz=16000, channels=1)
SILENT = GenerationConfig(transcripts=True, frames_hz=0)
TRANSCRIBED = ("farm_shop", "zh_teahouse")


@pytest.mark.parametrize("name", TRANSCRIBED)
def test_a_seed_gives_the_same_messages(tmp_path: Path, name: str) -> None:
    script = read(find(name))
    first, same = (generate(script, tmp_path / folder / name, SILENT) for folder in ("one", "same"))
    assert messages(first.bag) == messages(same.bag)
    assert first.truth == same.truth
    other = generate(script, tmp_path / "other" / name, GenerationConfig(transcripts=True, frames_hz=0, seed=1))
    assert messages(other.bag) != messages(first.bag)


def test_speech_lies_where_the_truth_says(tmp_path: Path) -> None:
    if shutil.which("flite") is None:
        pytest.skip("flite is not installed")
    config = GenerationConfig(frames_hz=0)
    generated = generate(read(find("kiosk_directions")), tmp_path / "one", config)
    same = generate(read(find("kiosk_directions")), tmp_path / "same", config)
    assert messages(generated.bag) == messages(same.bag)
    sound, first_ns = _sound(generated.bag)
    assert len(sound) / 16000 == pytest.approx((generated.truth.end_ns - generated.truth.start_ns) / 1e9, abs=0.01)
    for turn in generated.truth.turns:
        begin, end = ((at_ns - first_ns) * 16 // 1_000_000 for at_ns in (turn.start_ns, turn.end_ns))
        assert np.abs(sound[begin:end]).max() > 3 * np.abs(sound[:8000]).max()  # the room alone


@pytest.mark.parametrize("bag", shipped(), ids=lambda bag: bag.name)
def test_no_label_is_in_a_bag(bag: Path) -> None:
    truth = read_truth(bag)
    labels = {event.rationale for event in truth.events} | {event.correction for event in truth.events} - {""}
    labels |= {attribute.value for attribute in Attribute} | {polarity.value for polarity in Polarity}
    data = b"".join(data for topic, _, data in messages(bag) if topic not in ("/audio", "/camera/image_raw/compressed"))
    assert truth.events
    assert not [label for label in labels if label.encode() in data]
    metadata = (bag / "metadata.yaml").read_text(encoding="utf-8")
    assert not [label for label in labels if label in metadata]


@pytest.mark.parametrize("bag", shipped(), ids=lambda bag: bag.name)
def test_a_shipped_bag_fits_its_script(bag: Path) -> None:
    truth, script = read_truth(bag), read(find(bag.name))
    assert truth.script_sha256 == script.sha256(), f"make it anew: tactful scenarios --force {bag.name}"
    with BagReader(bag) as reader:
        decoded = [reader.decode(m) for m in reader.messages()]
        bounds = reader.bounds_ns
    assert bounds
    assert truth.start_ns <= bounds[0]
    assert bounds[1] <= truth.end_ns + 1_000_000
    robots = [turn.text for turn in truth.turns if turn.speaker is Speaker.ROBOT]
    assert [e.text for e in decoded if isinstance(e, RobotSpeech)][::2] == robots
    if script.language == "zh":
        assert len([u for u in decoded if isinstance(u, Utterance)]) == len(truth.turns)
    else:
        assert len(_sound(bag)[0]) > 30 * 16000


def _sound(bag: Path) -> tuple[np.ndarray, int]:
    with BagReader(bag) as reader:
        chunks = [decode(reader.decode(m), STATED) for m in reader.messages(["/audio"])]
    assert chunks[0].stamp_ns is not None
    return np.concatenate([chunk.samples[:, 0] for chunk in chunks]), chunks[0].stamp_ns


GAPS = st.floats(-0.9, 20, allow_nan=False).map(lambda gap_s: round(gap_s, 2))


def encounter(*turns: ScriptedTurn, **more: object) -> Encounter:
    voices = {"r": "robot_clear", "u": "man_us"}
    return Encounter.model_validate(
        {"id": "e", "setting": "s", "user": "u", "voices": voices, "turns": turns, "language": "en"} | more
    )


def two_seconds(turn: ScriptedTurn) -> tuple[float, ...]:
    return tuple(2.0 for _ in turn.pieces)


def start_of(timeline: Timeline, turn_id: str) -> float:
    return next(spoken.start_s for spoken in timeline.spoken if spoken.turn_id == turn_id)


@given(st.lists(GAPS, min_size=1, max_size=8), st.integers(0, 2**32))
def test_gaps_are_kept_and_a_seed_never_turns_an_overlap_round(gaps: list[float], seed: int) -> None:
    turns = [ScriptedTurn(id="r1", at="20", say="Hello there.")]
    turns += [ScriptedTurn(id=f"u{index}", gap_s=gap_s, say="Hello there.") for index, gap_s in enumerate(gaps)]
    for timeline in (lay_out(encounter(*turns), two_seconds), lay_out(encounter(*turns), two_seconds, seed)):
        before_s = 22.0
        for index, gap_s in enumerate(gaps):
            found_s = start_of(timeline, f"u{index}") - before_s
            assert math.isclose(found_s, gap_s, abs_tol=MAX_JITTER * abs(gap_s) + 1e-6)
            assert found_s * gap_s >= -1e-9
            before_s += found_s + 2.0


def test_pauses_and_moments_follow_the_speech() -> None:
    turns = (
        ScriptedTurn(id="u1", at="1", say="I, [1.5] I do not know."),
        ScriptedTurn(id="r1", at="u1+3", say="Take your time."),
        ScriptedTurn(id="u2", at="r1.end-0.5", say="Thank you."),
    )
    timeline = lay_out(encounter(*turns), two_seconds)
    times = {spoken.turn_id: (spoken.start_s, spoken.end_s) for spoken in timeline.spoken}
    assert times == {"u1": (1.0, 6.5), "r1": (4.0, 6.0), "u2": (5.5, 7.5)}
    assert timeline.length_s == 9.5


def test_people_stand_still_until_they_walk() -> None:
    person = ScriptedPerson(seen=("0..end",), away=("3..4",), distance_m={"0": 3.0, "6": 1.0, "9": 1.0})
    script = encounter(ScriptedTurn(id="u1", at="1", say="Hello."), people={"u": person}, length_s=10.0)
    (sighting,) = lay_out(script).people
    assert [sighting.distance_at(at_s) for at_s in (0.0, 4.5, 5.25, 6.0, 8.0, 9.5)] == [3.0, 3.0, 2.0, 1.0, 1.0, None]
    assert [sighting.is_away(at_s) for at_s in (2.9, 3.0, 4.0)] == [False, True, False]


def test_records_hold_speakers_and_times() -> None:
    senses, truth = records(read(find("farm_shop")), seed=1)
    assert senses.utterances[0].speaker is Speaker.USER
    assert {u.start_ns for u in senses.utterances} >= {turn.start_ns for turn in truth.turns}
    edges = [edge.state for edge in senses.robot_speech]
    assert edges == [SpeechEdge.START, SpeechEdge.STOP] * (len(edges) // 2)
    for utterance in senses.utterances:
        assert utterance.words[0].start_ns == utterance.start_ns
        assert utterance.words[-1].end_ns == utterance.end_ns
        assert " ".join(word.text for word in utterance.words) == utterance.text
    assert all(truth.start_ns <= event.onset_ns < event.offset_ns <= truth.end_ns for event in truth.events)
    gather_window(truth.start_ns, truth.end_ns, (), senses.utterances, senses.robot_speech, presences=senses.presences)


def test_a_person_who_leaves_is_absent_in_the_records() -> None:
    person = ScriptedPerson(seen=("2..6",), away=("4..6",))
    script = encounter(ScriptedTurn(id="r1", at="1", say="Hello."), people={"u": person}, length_s=10.0)
    senses, _ = records(script)
    states = {(p.stamp_ns - START_NS) // NS_PER_S: p.state for p in senses.presences}
    assert states[1] is PresenceState.ABSENT
    assert states[3] is PresenceState.PRESENT
    assert states[7] is PresenceState.LEFT
    assert states[8] is PresenceState.ABSENT
    assert [face.looking_away for p in senses.presences for face in p.faces] == [False, False, True, True]
