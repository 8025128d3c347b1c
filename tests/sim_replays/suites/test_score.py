"""Scores from plain files of predictions, replies as they are read, and the faults of a suite of one's own."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.records.episode import Query
from norm_core.records.outcome import Outcome
from sim_replays.items.target import SuiteError, Target, read_choice, read_predictions
from sim_replays.suites.egogapbench import SUITE as EGOGAPBENCH
from sim_replays.suites.egonormia import SUITE as EGONORMIA
from sim_replays.suites.report import report_to_plain
from sim_replays.suites.suite import REPLY_PARSERS, find_suite, load_suites
from sim_replays.suites.videonorms import REPLY_PARSERS as NORM_FORMS
from tests.command_line import tactful
from tests.sim_replays.suites.answer_files import right, scored, written


@pytest.fixture
def gap(shared_data: Path) -> list[Target]:
    return EGOGAPBENCH.read_targets(shared_data / "egogapbench", "default")


@pytest.fixture
def robot_set(shared_data: Path) -> list[Target]:
    return EGONORMIA.read_targets(shared_data / "egonormia/ood_robot.json", "")


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
    plain = report_to_plain(scored(EGONORMIA, robot_set, tmp_path, right(robot_set)))
    assert [plain[name] for name in ("both", "action", "justification", "sensible")] == [100.0] * 4
    assert plain["n"] == 11
    assert plain["counts"]["sensible"] == 11


def test_an_empty_set_against_an_empty_set_is_1(tmp_path: Path) -> None:
    entry = {"behaviors": list("abcde"), "justifications": list("vwxyz"), "correct": 0, "sensibles": [], "desc": ""}
    path = tmp_path / "some.json"
    path.write_text(json.dumps({"a_1": entry, "a_2": entry}))
    targets = EGONORMIA.read_targets(path, "")
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
    fails("[1]", "not an object with an id")


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
        places = read_choice(answer, target)
        assert places is None or all(0 <= place < 4 for place in places)
        assert several or places is None or len(places) == 1


def test_files_may_have_any_name_and_be_lists(shared_data: Path, tmp_path: Path) -> None:
    lines = (shared_data / "egogapbench/dev_default.bundles.jsonl").read_text().splitlines()[:5]
    bundles = [json.loads(line) for line in lines]
    (tmp_path / "test_default.bundles.jsonl").write_text("\n".join(lines))
    (tmp_path / "test_egoplan.bundles.jsonl").write_text("\n".join(lines))
    (tmp_path / "any.json").write_text(json.dumps(bundles))
    (tmp_path / "by_id.json").write_text(json.dumps({str(one["image_id"]): one for one in bundles}))
    wanted = [target.key for target in EGOGAPBENCH.read_targets(tmp_path, "default")]
    assert len(wanted) >= 5
    for name in ("any.json", "by_id.json", "test_default.bundles.jsonl"):
        assert [target.key for target in EGOGAPBENCH.read_targets(tmp_path / name, "default")] == wanted
    entries = json.loads((shared_data / "egonormia/ood_robot.json").read_text())
    (tmp_path / "list").mkdir()
    (tmp_path / "list/items.json").write_text(json.dumps(list(entries.values())))
    assert len(EGONORMIA.read_targets(tmp_path / "list", "")) == 33


def test_a_file_cut_in_half_says_where(shared_data: Path, tmp_path: Path) -> None:
    text = (shared_data / "egogapbench/dev_default.bundles.jsonl").read_text()
    (tmp_path / "cut.bundles.jsonl").write_text(text[: len(text) // 2])
    with pytest.raises(SuiteError, match=r"cut\.bundles\.jsonl, line \d+: is not JSON"):
        EGOGAPBENCH.read_targets(tmp_path, "default")
    text = (shared_data / "egonormia/ood_robot.json").read_text()
    (tmp_path / "cut.json").write_text(text[: len(text) // 2])
    with pytest.raises(SuiteError, match="is not JSON, as where a file was cut"):
        EGONORMIA.read_targets(tmp_path / "cut.json", "")


def test_a_suite_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="did you mean egonormia"):
        find_suite("egonorma")
    for suite in load_suites().values():
        with pytest.raises(SuiteError):
            suite.read_targets(tmp_path / "nowhere", "default")
    written(tmp_path / "empty.json", [])
    with pytest.raises(SuiteError, match="is empty"):
        EGONORMIA.read_targets(tmp_path / "empty.json", "")


SUITE = """
from sim_replays.suites.own import Question, make_suite

def read(path):
    yield Question(id="d", ask="Who?", options={options}, right=0)

SUITE = make_suite("doors", read, score=lambda targets, predictions: {{}}, columns=("accuracy",))
"""


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("I", "you", "i."), "d: the options A and C are the same; change or remove one"),
        (("I", "you"), "suite.py: its scorer gives no figure accuracy, which `columns` names; add it"),
    ],
)
def test_a_fault_in_a_suite_is_named(tmp_path: Path, options: tuple[str, ...], complaint: str) -> None:
    (tmp_path / "suite.py").write_text(SUITE.format(options=options))
    (tmp_path / "data").mkdir()
    (tmp_path / "answers.jsonl").write_text('{"id": "d", "answer": 0}')
    ended = tactful("bench", "score", tmp_path / "answers.jsonl", "--suite", tmp_path, "--data", tmp_path / "data")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert complaint in " ".join(ended.stderr.split())


OPTIONS = ("Wait for the bus.", "Board the bus.", "Sit down.")
STRICT, LENIENT = True, False


def query(form: str, options: tuple[str, ...] = OPTIONS) -> Query:
    return Query(stamp_ns=0, query_id="q", episode_id="q", task="t", style=form, options=options)


@pytest.mark.parametrize(
    ("form", "reply", "chosen", "strict"),
    [
        ("json_letter", '{"answer": "B", "rationale": "it stops"}', (1,), STRICT),
        ("json_letter", '```json\n{"answer": "B"}\n```', (1,), LENIENT),
        ("json_letter", '{"answer": "Board the bus"}', (1,), LENIENT),
        ("json_letter", '<think>{"answer": "A"}</think>{"answer": "C"}', (2,), STRICT),
        ("json_letter", "(B) Board the bus.", (1,), LENIENT),
        ("json_letter", '{"answer": "D"}', None, STRICT),
        ("json_letter", '{"answer": ["A", "B"]}', None, STRICT),
        ("json_letter", "", None, STRICT),
        ("number", "2 people wait.\n\n3", (2,), STRICT),
        ("number", "Reasons.\n**Answer: 3**", (2,), LENIENT),
        ("number", "Reasons.\n1 or 3", None, STRICT),
        ("number", "Reasons.\n4", None, STRICT),
        ("number", "It takes 2.5 minutes", None, STRICT),
        ("number_list", "Some [text].\n[1, 3]", (0, 2), STRICT),
        ("number_list", "[]", (), STRICT),
        ("number_list", "[1, 3] are sensible.", (0, 2), LENIENT),
        ("number_list", "Both.\n1 and 2", (0, 1), LENIENT),
        ("number_list", "[1, 7]", None, STRICT),
        ("number_list", "none", None, STRICT),
        ("letter", "(B)", (1,), STRICT),
        ("letter", "It is (B), I think.", (1,), LENIENT),
        ("letter", "Either (A) or (B)", None, STRICT),
        ("letter", "b", None, STRICT),
        ("number", "(2) Board the bus.", (1,), LENIENT),
        ("number", "(2)", (1,), STRICT),
        ("number", "I would board the bus.", (1,), LENIENT),
        ("letters", "A, C", (0, 2), STRICT),
        ("letters", "(A) and (C)", (0, 2), STRICT),
        ("letters", "(A) Wait for the bus, since it is late; (C) Sit down", (0, 2), LENIENT),
        ("letters", "nothing of these", None, STRICT),
        ("letter", "True", (0,), STRICT),
        ("json_letter", '{"answer": "A"} Wait, actually B.', None, STRICT),
        ("json_letter", 'B is too late, so:\n{"answer": "A"}', (0,), LENIENT),
        ("number", "3\n\nNote: option 1 is too hasty.", None, STRICT),
        ("number", "All except 2", None, STRICT),
        ("number", "-1", None, STRICT),
        ("number_list", "I exclude [2]", None, STRICT),
        ("number_list", "[1, 3]\nThe other, [2], is rude.", None, STRICT),
        ("letters", "(A) and (C) apply; (B) does not.", None, STRICT),
        ("letters", "(A), (C): the bus does not wait", (0, 2), LENIENT),
        ("number", "3. The others are not polite.", (2,), LENIENT),
    ],
)
def test_a_reply_is_read_or_it_is_not(form: str, reply: str, chosen: tuple[int, ...] | None, strict: bool) -> None:
    options = ("True", "False") if "rue" in reply or "false" in reply else OPTIONS
    found = REPLY_PARSERS[form](query(form, options), reply)
    assert (found and found.chosen) == chosen
    assert found is None or found.is_strict is strict


@pytest.mark.parametrize(
    ("form", "reply", "chosen", "text"),
    [
        ("adherence", '{"label": "violation"}', (1,), ""),
        ("adherence", "遵守/违反：遵守", (0,), ""),
        ("adherence", "Timestamp Start: 3\nAdherence/Violation: [Adherence]", (0,), ""),
        ("adherence", "The norm is adhered to.", (0,), ""),
        ("adherence", "Adherence or violation?", None, ""),
        ("adherence", "The norm is not adhered to.", None, ""),
        ("adherence", "Adherence/Violation: Not a violation", None, ""),
        ("adherence", "Adherence/Violation: Adherence\nAdherence/Violation: Violation", None, ""),
        ("evidence", '{"label": "adherence", "verbal": "Hi", "nonverbal": ""}', None, ""),
        (
            "evidence",
            "Adherence/Violation: Violation\nVerbal Evidence: He shouts.\nNonVerbal Evidence: He points.",
            (1,),
            '{"verbal": "He shouts.", "nonverbal": "He points."}',
        ),
        ("norm", '{"norm": "请打招呼"}', (), '{"norm": "请打招呼"}'),
        ("norm", "Say hello.", None, ""),
    ],
)
def test_norms_are_read_with_their_evidence(form: str, reply: str, chosen: tuple[int, ...] | None, text: str) -> None:
    found = NORM_FORMS[form](query(form), reply)
    assert (found and found.chosen) == chosen
    assert found is None or found.text == text
