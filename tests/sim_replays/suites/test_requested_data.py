"""VideoNorms and HSRI, from folders made here as documented."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from norm_core.records.flag import Attribute
from sim_replays.items.target import SuiteError
from sim_replays.suites import hsri, videonorms
from sim_replays.suites.hsri import SUITE as HSRI
from sim_replays.suites.videonorms import SUITE as VIDEONORMS
from tests.sim_replays.requested_data import norm, segment
from tests.sim_replays.suites.answer_files import right, scored, written


def test_videonorms_by_hand(tmp_path: Path) -> None:
    written(tmp_path / videonorms.FILE, [norm(number) for number in range(8)])
    targets = VIDEONORMS.read_targets(tmp_path, "")
    lines = right(targets)
    figures = scored(VIDEONORMS, targets, tmp_path, lines).figures
    assert (figures["macro_f1"].value, figures["verbal"].count) == (100.0, 0)
    for line in lines:
        if line["task"] == "adherence":
            line["answer"] = "adherence"  # F1 of 12/14 and 0, as 6 of 8 are
        if line["task"] == "evidence":
            line |= {"answer": "Violation", "verbal_grade": 4, "nonverbal_grade": 2}
        if line["task"] == "norm":
            line |= {"answer": "Greet people.", "grade": 3 if line["id"] == "n0" else 5}
    figures = scored(VIDEONORMS, targets, tmp_path, lines).figures
    assert figures["f1_adherence"].value == pytest.approx(1200 / 14)
    assert (figures["f1_violation"].value, figures["macro_f1"].value) == pytest.approx((0.0, 600 / 14))
    # Evidence is graded only where the label was right: the two violations.
    assert (figures["verbal"].value, figures["verbal"].count) == (4.0, 2)
    assert (figures["norm"].value, figures["norm"].count) == (4.75, 8)


def test_only_the_norm_is_asked_where_annotators_have_no_majority(tmp_path: Path) -> None:
    written(tmp_path / videonorms.FILE, [norm(0, label=None), norm(1)])
    tasks = [(target.id, target.task) for target in VIDEONORMS.read_targets(tmp_path, "")]
    assert tasks == [("n0", "norm"), *(("n1", task) for task in VIDEONORMS.tasks)]


def test_every_fault_of_a_folder_is_told_at_once(tmp_path: Path) -> None:
    written(tmp_path / videonorms.FILE, [norm(0), norm(0), norm(1, label="maybe"), norm(2, sho="x")])
    with pytest.raises(SuiteError) as raised:
        videonorms.read(tmp_path)
    said = str(raised.value)
    assert "line 2: id: 'n0' stands in" in said
    assert "line 3: label: input should be 'adherence' or 'violation', not 'maybe'" in said
    assert "line 4: sho: unknown key; did you mean show?" in said
    with pytest.raises(SuiteError, match=r"has no segments\.jsonl"):
        hsri.read(tmp_path)
    with pytest.raises(SuiteError, match=r"none: there is no such folder or file; check the path"):
        hsri.read(tmp_path / "none")


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"transcript": [{"speaker": "user", "text": "Hi.", "start_s": 4, "end_s": 3}]}, "it ends at 3 s, before"),
        ({"transcript": [{"speaker": "user", "text": "Hi.", "start_s": -1}]}, "start_s: "),
        ({"transcript": [{"speaker": "user", "text": ""}]}, "text: "),
        ({"attributes": ["emotions", "emotions"]}, "an attribute stands there twice"),
        ({"kind": "error", "correction": ""}, "an error has a rationale and a correction"),
    ],
)
def test_a_segment_that_cannot_be_is_told(tmp_path: Path, other: dict[str, Any], told: str) -> None:
    written(tmp_path / hsri.FILE, [segment(0), {**segment(1), **other}])
    with pytest.raises(SuiteError, match=f"line 2: .*{told}"):
        hsri.read(tmp_path)


def test_a_task_that_would_lose_all_its_questions_is_told(tmp_path: Path) -> None:
    """Six errors of two kinds leave each but three others whose answers would be wrong."""
    errors = [{**segment(0), "id": f"e{n}", "attributes": [list(Attribute)[n % 2].value]} for n in range(6)]
    texts = ({"rationale": f"It says {n}.", "correction": f"Do {n}."} for n in range(6))
    written(tmp_path / hsri.FILE, [error | text for error, text in zip(errors, texts, strict=True)])
    with pytest.raises(SuiteError, match="rationale: none of 6 segments can be asked about"):
        hsri.read(tmp_path)


def test_hsri_scores_all_where_all_is_right(tmp_path: Path) -> None:
    written(tmp_path / hsri.FILE, [segment(number) for number in range(60)])
    targets = HSRI.read_targets(tmp_path, "")
    assert {target.task for target in targets} == set(HSRI.tasks)
    figures = scored(HSRI, targets, tmp_path, right(targets)).figures
    assert [round(figure.value, 6) for figure in figures.values()] == [100.0] * len(HSRI.columns)
    wrong = [{**line, "outcome": "timed_out"} for line in right(targets)]
    assert {figure.value for figure in scored(HSRI, targets, tmp_path, wrong).figures.values()} == {0.0}


def test_partly_right_sets_count_as_partial(tmp_path: Path) -> None:
    written(tmp_path / hsri.FILE, [segment(number) for number in range(60)])
    targets = [target for target in HSRI.read_targets(tmp_path, "") if target.by["seed"] == "0"]
    lines = [
        {**line, "answer": [list(Attribute)[place].value for place in line["answer"][:1]]}
        if line["task"] == "attributes"
        else line
        for line in right(targets)
    ]
    figures = scored(HSRI, targets, tmp_path, lines).figures
    single = [target for target in targets if target.task == "attributes" and len(target.right) == 1]
    asked = figures["attributes_exact"].count
    assert figures["attributes_partial"].value == 100.0
    assert figures["attributes_exact"].value == pytest.approx(100 * len(single) / asked)
    assert 0 < figures["attributes_f1"].value < 100


def test_labels_are_drawn_at_the_paper_s_rates() -> None:
    segments = [
        hsri.HsriSegment.model_validate({**segment(number), "study": ("empathic", "wellness")[number // 3 % 2]})
        for number in range(900)
    ]
    kinds = {one.id: (one.kind.value, one.study) for one in segments}
    drawn = Counter(
        (question.task, *kinds[question.id.partition("#")[0]])
        for question in hsri.draw_questions(segments)
        if question.id.endswith("#0")
    )
    assert [drawn["error2", kind, "wellness"] for kind in ("error", "competence", "none")] == [50, 30, 20]
    assert sum(count for (task, kind, _), count in drawn.items() if (task, kind) == ("attributes", "error")) == 47


def test_questions_are_drawn_as_the_paper_says() -> None:
    segments = [hsri.HsriSegment.model_validate(segment(number)) for number in range(60)]
    by_id = {one.id: one for one in segments}
    questions = hsri.draw_questions(segments)
    assert questions == hsri.draw_questions(list(reversed(segments)))
    for question in questions:
        own = by_id[question.id.partition("#")[0]]
        if question.task in hsri.CHOICES:
            assert len(set(question.options)) == 5
        if question.task == "pre":
            assert own.kind == "competence"
            assert own.join_words("user") not in question.talk  # the answer
            assert question.options[question.right[0]] == own.join_words("user")
        if question.task == "rationale":
            assert own.kind == "error"
            for place, option in enumerate(question.options):
                other = next(one for one in segments if one.rationale == option)
                assert place in question.right or set(other.attributes) != set(own.attributes)
    places = [question.right[0] for question in questions if question.task == "pre"]
    assert len(set(places)) == 5
