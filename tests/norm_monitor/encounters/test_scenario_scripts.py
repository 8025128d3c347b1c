"""Scripts: what is refused, and how the message says so."""

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from norm_core.runtime.errors import TactfulError
from norm_monitor.encounters.encounter import Basis, Moment, parse_moment, parse_span
from norm_monitor.encounters.library import SPLITS, encounters, find, paths, read

SECONDS = st.decimals(0, 999, places=2).map(float)


def script(**changes: Any) -> dict[str, Any]:
    """A small script that is well, with some of it changed."""
    plain: dict[str, Any] = {
        "id": "small",
        "setting": "a kiosk",
        "user": "a passer-by",
        "voices": {"r": "robot_clear", "u": "man_us"},
        "turns": [
            {"id": "u1", "at": 1.0, "say": "Where is, [1.5] where is the bridge?"},
            {"id": "r1", "gap_s": 4.0, "say": "Umbrellas are nine euros."},
        ],
        "people": {"u": {"seen": ["0..end"], "distance_m": {"0": 3.0, "u1": 1.2, "end": 1.2}}},
        "events": [
            {
                "polarity": "error",
                "attributes": ["user_intention"],
                "onset": "r1",
                "offset": "r1.end",
                "basis": "understanding",
                "evidence": ["u1", "r1"],
                "rationale": "Misses what was asked.",
                "correction": "Tell the way.",
            }
        ],
    }
    return plain | changes


def event(**changes: Any) -> dict[str, Any]:
    return {"events": [script()["events"][0] | changes]}


def written(folder: Path, plain: dict[str, Any]) -> Path:
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump(plain), encoding="utf-8")
    return path


def test_a_valid_script_is_read(tmp_path: Path) -> None:
    encounter = read(written(tmp_path, script()))
    assert encounter.turns[0].pieces == ("Where is,", "where is the bridge?")
    assert encounter.turns[0].pauses_s == (1.5,)
    assert encounter.events[0].basis is Basis.UNDERSTANDING


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"setings": "x"}, "did you mean setting"),
        ({"turns": [{"id": "u1", "say": "Hi.", "at": 1, "gap_s": 2}]}, "both gap_s and at"),
        ({"turns": [{"id": "u1", "say": "Hi. [2.0]"}], "events": []}, "begins or ends with a pause"),
        ({"turns": [{"id": "u1", "say": "Hi."}, {"id": "u1", "say": "Ho."}], "events": []}, "u1 appears twice"),
        ({"turns": [{"id": "v1", "say": "Hi."}], "events": []}, "voices has no v"),
        ({"turns": [{"id": "u1", "say": "Hi.", "at": "r1+1"}], "events": []}, "earlier turns alone"),
        ({"turns": [{"id": "u1", "say": "Hi.", "at": "end-1"}], "events": []}, "cannot be counted from the end"),
        ({"turns": [{"id": "u1", "say": "Hi.", "gap_s": -3}], "events": []}, "before the encounter"),
        ({"people": {"u": {"seen": ["soon..end"]}}}, "'soon' is not a moment"),
        ({"people": {"u": {"seen": ["r9..end"]}}}, "names turn r9"),
        ({"length_s": 3.0}, "after length_s 3"),
        (event(attributes=["emotions", "emotions"]), "appears twice"),
        (event(correction=""), "an error needs a correction"),
        (event(polarity="competence"), "a competence has none"),
        (event(onset="r7"), "names turn r7"),
        (event(evidence=["u1"]), "none of its evidence"),
        (event(onset="r1.end", offset="r1"), r"events\.0"),
    ],
)
def test_a_faulty_script_is_refused_with_its_fault(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TactfulError, match=message):
        read(written(tmp_path, script(**changes)))


def test_a_file_has_the_name_of_its_encounter(tmp_path: Path) -> None:
    with pytest.raises(TactfulError, match=r"name the file other\.yaml"):
        read(written(tmp_path, script(id="other")))


def test_an_unknown_encounter_is_refused() -> None:
    with pytest.raises(TactfulError, match="no encounter 'nowhere'"):
        find("nowhere")
    with pytest.raises(TactfulError, match=r"the splits are development, many_hands$"):
        paths("test")


@given(SECONDS, st.sampled_from(["", "+", "-"]), SECONDS)
def test_moments_are_read_back(base_s: float, sign: str, shift_s: float) -> None:
    shift = f"{sign}{shift_s}" if sign else ""
    signed_s = float(shift or 0)
    assert parse_moment(f"{base_s}{shift}") == Moment(second=base_s, shift_s=signed_s)
    assert parse_moment(f"r12.end{shift}") == Moment(turn="r12", turn_end=True, shift_s=signed_s)
    assert parse_span(f"u3{shift}..end") == (Moment(turn="u3", shift_s=signed_s), Moment())


@given(st.text(max_size=12))
def test_any_other_text_is_refused_as_a_moment(text: str) -> None:
    try:
        result: Moment | str = parse_moment(text)
    except ValueError as error:
        result = str(error)
    if isinstance(result, str):
        assert "is not a moment" in result
    else:
        assert result.second is not None or result.turn or text.startswith("end")


def test_the_splits_share_no_encounter_and_no_sentence() -> None:
    words_by_split = {
        split: {
            turn.words for encounter in encounters(split) for turn in encounter.turns if len(turn.words.split()) > 8
        }
        for split in SPLITS
    }
    for first_split, other in combinations(SPLITS, 2):
        assert words_by_split[first_split].isdisjoint(words_by_split[other])
        assert {path.name for path in paths(first_split)}.isdisjoint(path.name for path in paths(other))


def test_many_hands_state_their_writer_and_its_kind() -> None:
    for path in paths("many_hands"):
        encounter = read(path)
        assert encounter.writer == path.parent.name, path
        assert encounter.writer_kind, path
