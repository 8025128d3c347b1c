"""Scores from plain files of predictions, with every known answer that the data at hand allows."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.records.outcome import Outcome
from sim_replays.suites.egogapbench import SUITE as EGOGAPBENCH
from sim_replays.suites.egonormia import SUITE as EGONORMIA
from sim_replays.suites.report import to_plain
from sim_replays.suites.suite import suite_called, suites
from sim_replays.suites.target import SuiteError, Target, prediction_by_index, read_predictions
from tests.sim_replays.suites.answer_files import right, scored, written


@pytest.fixture
def gap(shared_data: Path) -> list[Target]:
    return EGOGAPBENCH.read(shared_data / "egogapbench", "default")


@pytest.fixture
def robot_set(shared_data: Path) -> list[Target]:
    return EGONORMIA.read(shared_data / "egonormia/ood_robot.json", "")


def test_letters_and_places_are_the_same(gap: list[Target], tmp_path: Path) -> None:
    letters = [{"id": one.id, "answer": "abcd"[one.right[0]]} for one in gap]
    assert scored(EGOGAPBENCH, gap, tmp_path, letters).figures["overall"].value == 100.0
    assert scored(EGOGAPBENCH, gap, tmp_path, right(gap)).figures["overall"].value == 100.0


@pytest.mark.parametrize("outcome", [one for one in Outcome if one is not Outcome.ANSWERED])
def test_no_outcome_but_answered_is_right(robot_set: list[Target], tmp_path: Path, outcome: Outcome) -> None:
    lines = [{**line, "outcome": outcome.value} for line in right(robot_set)]
    found = scored(EGONORMIA, robot_set, tmp_path, lines)
    assert [figure.value for figure in found.figures.values()] == [0.0] * 4
    assert found.outcomes[outcome] == 33


def test_right_answers_score_all(robot_set: list[Target], tmp_path: Path) -> None:
    plain = to_plain(scored(EGONORMIA, robot_set, tmp_path, right(robot_set)))
    assert [plain[name] for name in ("both", "action", "justification", "sensible")] == [100.0] * 4
    assert plain["n"] == 11
    assert plain["counts"]["sensible"] == 11


def test_an_empty_set_against_an_empty_set_is_1(tmp_path: Path) -> None:
    entry = {"behaviors": list("abcde"), "justifications": list("vwxyz"), "correct": 0, "sensibles": [], "desc": ""}
    path = tmp_path / "some.json"
    path.write_text(json.dumps({"a_1": entry, "a_2": entry}))
    targets = EGONORMIA.read(path, "")
    lines = [
        {"id": "a_1", "task": "sensible", "answer": [], "outcome": "answered"},
        {"id": "a_2", "task": "sensible", "answer": [], "outcome": "abstained"},
    ]
    assert scored(EGONORMIA, targets, tmp_path, lines).figures["sensible"].value == 50.0


def test_missing_and_unknown_ids_are_told(gap: list[Target], tmp_path: Path) -> None:
    lines = [*right(gap[:590:2]), {"id": "nobody", "task": "eas", "answer": 0}]
    found = scored(EGOGAPBENCH, gap, tmp_path, lines)
    assert found.outcomes["missing"] == 295
    assert found.figures["overall"].value == 50.0
    assert found.unknown == ("nobody",)
    assert any("nobody" in note for note in found.notes)


def test_faults_are_named_with_their_line(gap: list[Target], tmp_path: Path) -> None:
    def fails(text: str, match: str) -> None:
        path = tmp_path / "bad.jsonl"
        path.write_text(text)
        with pytest.raises(SuiteError, match=match):
            read_predictions(path, gap)

    one = json.dumps({"id": gap[0].id, "answer": 0})
    fails(f"{one}\n{'[' * 100_000}\n", "line 2: is not JSON")
    fails(f"{one}\n{one}\n", r"line 2: .* stands in line 1 already")
    fails(f"{one}\n{one[:9]}", "line 2: is not JSON")
    fails('{"id": "x", "task": "action"}', "line 1: task: 'action' is unknown; write one of eas")
    fails('{"id": "x", "outcome": "maybe"}\n', "no id in it is in the data")
    fails(json.dumps({"id": gap[0].id, "outcome": "maybe"}), "outcome: 'maybe' is unknown; write one of answered")
    fails("[1]", "is no object with an id")


def test_an_answer_that_is_none_counts_as_unparsed(gap: list[Target], tmp_path: Path) -> None:
    answers = [None, "E", 4, -1, 1.5, [0, 1], "the first", {"a": 1}]
    lines = [{"id": one.id, "answer": answer, "outcome": "answered"} for one, answer in zip(gap, answers, strict=False)]
    found = scored(EGOGAPBENCH, gap, tmp_path, lines)
    assert found.outcomes["unparsed"] == len(answers)
    assert any("8 answers not usable" in note for note in found.notes)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_whatever_is_answered_is_places_or_nothing(answer: object) -> None:
    for several in (False, True):
        target = Target(id="a", task="t", group="g", options=4, several=several, words=("A", "B", "C", "D"))
        places = prediction_by_index(answer, target)
        assert places is None or all(0 <= place < 4 for place in places)
        assert several or places is None or len(places) == 1


def test_files_may_have_any_name_and_be_lists(shared_data: Path, tmp_path: Path) -> None:
    lines = (shared_data / "egogapbench/dev_default.bundles.jsonl").read_text().splitlines()[:5]
    bundles = [json.loads(line) for line in lines]
    (tmp_path / "test_default.bundles.jsonl").write_text("\n".join(lines))
    (tmp_path / "test_egoplan.bundles.jsonl").write_text("\n".join(lines))
    (tmp_path / "any.json").write_text(json.dumps(bundles))
    (tmp_path / "by_id.json").write_text(json.dumps({str(one["image_id"]): one for one in bundles}))
    wanted = [target.key for target in EGOGAPBENCH.read(tmp_path, "default")]
    assert len(wanted) >= 5
    for name in ("any.json", "by_id.json", "test_default.bundles.jsonl"):
        assert [target.key for target in EGOGAPBENCH.read(tmp_path / name, "default")] == wanted
    entries = json.loads((shared_data / "egonormia/ood_robot.json").read_text())
    (tmp_path / "list").mkdir()
    (tmp_path / "list/items.json").write_text(json.dumps(list(entries.values())))
    assert len(EGONORMIA.read(tmp_path / "list", "")) == 33


def test_a_file_cut_in_half_says_where(shared_data: Path, tmp_path: Path) -> None:
    text = (shared_data / "egogapbench/dev_default.bundles.jsonl").read_text()
    (tmp_path / "cut.bundles.jsonl").write_text(text[: len(text) // 2])
    with pytest.raises(SuiteError, match=r"cut\.bundles\.jsonl, line \d+: is not JSON"):
        EGOGAPBENCH.read(tmp_path, "default")
    text = (shared_data / "egonormia/ood_robot.json").read_text()
    (tmp_path / "cut.json").write_text(text[: len(text) // 2])
    with pytest.raises(SuiteError, match="is not JSON, as where a file was cut"):
        EGONORMIA.read(tmp_path / "cut.json", "")


def test_a_suite_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="did you mean egonormia"):
        suite_called("egonorma")
    for suite in suites().values():
        with pytest.raises(SuiteError):
            suite.read(tmp_path / "nowhere", "default")
    written(tmp_path / "empty.json", [])
    with pytest.raises(SuiteError, match="is empty"):
        EGONORMIA.read(tmp_path / "empty.json", "")
