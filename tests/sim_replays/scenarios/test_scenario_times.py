"""How a script is laid out in time, and the records made from it."""

import math

from hypothesis import given
from hypothesis import strategies as st

from norm_core.records.presence import PresenceState
from norm_core.records.speech import Speaker, SpeechEdge
from norm_core.records.window import gather_window
from norm_core.runtime.time import NS_PER_S
from sim_replays.scenarios.encounter import Encounter, ScriptedPerson, ScriptedTurn
from sim_replays.scenarios.generate import START_NS, records
from sim_replays.scenarios.library import find, read
from sim_replays.scenarios.timeline import MOST_JITTER, Timeline, lay_out

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
            assert math.isclose(found_s, gap_s, abs_tol=MOST_JITTER * abs(gap_s) + 1e-6)
            assert found_s * gap_s >= -1e-9
            before_s += found_s + 2.0


def test_pauses_and_moments_follow_the_speech() -> None:
    said = (
        ScriptedTurn(id="u1", at="1", say="I, [1.5] I do not know."),
        ScriptedTurn(id="r1", at="u1+3", say="Take your time."),
        ScriptedTurn(id="u2", at="r1.end-0.5", say="Thank you."),
    )
    timeline = lay_out(encounter(*said), two_seconds)
    times = {spoken.turn_id: (spoken.start_s, spoken.end_s) for spoken in timeline.spoken}
    assert times == {"u1": (1.0, 6.5), "r1": (4.0, 6.0), "u2": (5.5, 7.5)}
    assert timeline.length_s == 9.5


def test_people_stand_still_until_they_set_out() -> None:
    person = ScriptedPerson(seen=("0..end",), away=("3..4",), distance_m={"0": 3.0, "6": 1.0, "9": 1.0})
    script = encounter(ScriptedTurn(id="u1", at="1", say="Hello."), people={"u": person}, length_s=10.0)
    (sighting,) = lay_out(script).people
    assert [sighting.distance_at(at_s) for at_s in (0.0, 4.5, 5.25, 6.0, 8.0, 9.5)] == [3.0, 3.0, 2.0, 1.0, 1.0, None]
    assert [sighting.is_away(at_s) for at_s in (2.9, 3.0, 4.0)] == [False, True, False]


def test_the_records_say_who_spoke_and_when() -> None:
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


def test_somebody_who_leaves_is_gone_in_the_records() -> None:
    person = ScriptedPerson(seen=("2..6",), away=("4..6",))
    script = encounter(ScriptedTurn(id="r1", at="1", say="Hello."), people={"u": person}, length_s=10.0)
    senses, _ = records(script)
    states = {(p.stamp_ns - START_NS) // NS_PER_S: p.state for p in senses.presences}
    assert states[1] is PresenceState.ABSENT
    assert states[3] is PresenceState.PRESENT
    assert states[7] is PresenceState.LEFT
    assert states[8] is PresenceState.ABSENT
    assert [face.looking_away for p in senses.presences for face in p.faces] == [False, False, True, True]
