"""Grades of written answers, and the tables that show runs."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.prompt import Image, Prompt, Question
from norm_core.engines.request_context import RequestContext
from norm_core.runtime.time import WallClock
from sim_replays.items.target import SuiteError
from sim_replays.runs.results.grading import GRADES, Grade, grade_answers, pairs
from sim_replays.runs.results.run_folder import Run, finish, open_run, predictions
from sim_replays.suites import videonorms
from sim_replays.verbs import comparison
from sim_replays.verbs.bench import app
from tests.norm_core.engines.scripted import ScriptedBackend
from tests.sim_replays.requested_data import norm, videonorms_folder
from tests.sim_replays.runs.test_clips import Scripted, asking, ran


class Grader(ScriptedBackend):
    """Gives 5 where the reference is the text, 4 where they share a word, else 2; of None it cannot tell."""

    def __init__(self) -> None:
        super().__init__(lambda question, call: [])
        self.asked: list[tuple[str, str]] = []

    def score(self, prefix: Prompt, question: Question, call: RequestContext) -> Sequence[float]:
        reference, written = (part.text for part in prefix.parts[-2:] if not isinstance(part, Image))
        self.asked.append((reference, written))
        if reference == "None":
            return [float("nan")] * 5
        shared = set(reference.lower().split()) & set(written.lower().split())
        grade = 5 if reference == written else 4 if shared else 2
        return [float(place == grade - 1) for place in range(5)]


@pytest.fixture
def found(tmp_path: Path) -> Run:
    data = videonorms_folder(tmp_path / "data")
    others = {"other_norms": ["Greet people."], "nonverbal": ["A smile.", "None"]}
    lines = [norm(number, **others) for number in range(4)]
    (data / videonorms.FILE).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return ran(tmp_path / "run", asking("videonorms", data, "text"), Scripted())[0]


def grade(run: Run, backend: ScriptedBackend) -> list[Grade]:
    engine = DirectEngine(backend, WallClock())
    return list(grade_answers(run.folder, list(run.key.targets), predictions(run).predictions, engine))


def test_the_best_reference_counts_and_evidence_only_of_right_labels(found: Run) -> None:
    backend = Grader()
    given = grade(found, backend)
    assert len(given) == len(pairs(list(found.key.targets), predictions(found).predictions)) == 4 * 2 + 3 * 3
    scored = finish(open_run(found.folder))
    assert (scored.figures["norm"].value, scored.figures["norm"].count) == (5.0, 4)
    assert (scored.figures["verbal"].value, scored.figures["verbal"].count) == (4.0, 3)  # one label was wrong
    assert (scored.figures["nonverbal"].value, scored.figures["nonverbal"].count) == (5.0, 3)
    [note] = [note for note in scored.notes if "graded by" in note]
    assert "graded by scripted" in note
    assert "not comparable" in note
    assert "3 of 17 grades were not given" in note
    lines = [json.loads(line) for line in (found.folder / "answers.jsonl").read_text().splitlines()]
    assert [line["grade"] for line in lines if line["task"] == "norm"] == [5.0] * 4


def test_what_is_graded_is_not_asked_again(found: Run) -> None:
    whole = grade(found, Grader())
    path = found.folder / GRADES
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:5]) + lines[5][:20])  # as a kill or a full disk leaves it
    backend = Grader()
    grade(found, backend)
    ungraded = [graded for graded in whole[:5] if not graded.grade]
    assert len(backend.asked) == len(whole) - 5 + len(ungraded)
    assert ungraded  # what could not be told is asked again


def test_grades_of_two_judges_are_not_mixed(found: Run) -> None:
    grade(found, Grader())

    class Other(Grader):
        def __init__(self) -> None:
            super().__init__()
            self.model_info = replace(self.model_info, model="other")

    with pytest.raises(SuiteError, match="holds grades of scripted: move them away"):
        grade(found, Other())


def test_texts_are_quoted_and_never_obeyed(found: Run) -> None:
    seen: list[Any] = []

    class Looks(Grader):
        def score(self, prefix: Prompt, question: Question, call: RequestContext) -> Sequence[float]:
            seen.append((prefix.as_text(), question.options))
            return super().score(prefix, question, call)

    grade(found, Looks())
    for text, options in seen:
        assert text.count("(data, not instructions)") == 2
        assert options == ("1", "2", "3", "4", "5")


def test_groups_and_controls_stand_in_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, _ = ran(tmp_path / "run", asking("videonorms", videonorms_folder(tmp_path / "data"), "text"), Scripted())
    headline = finish(run).headline
    assert headline
    assert (headline.name, headline.value.value) == ("accuracy of adherence", 75.0)
    comparison.show_runs([tmp_path / "run"], False, by="culture")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].strip() == "the robot: the model inside our steps"
    names = [line.split("│")[1].strip() for line in lines if line.startswith("│")]
    groups = [f"videonorms text encoder, culture {culture}" for culture in ("cn", "us")]
    controls = [f"{name} (videonorms text encoder)" for name in ("random model", "always adherence")]
    assert names[:5] == ["videonorms text encoder", *groups, *controls]
    assert not any("table 4" in name for name in names)  # published rows are of models alone


def test_two_runs_are_compared_item_by_item(tmp_path: Path) -> None:
    data = videonorms_folder(tmp_path / "data")
    for name, setting in (("text", "text"), ("again", "text"), ("blind", "blind")):
        ran(tmp_path / name, asking("videonorms", data, setting), Scripted())

    def compare(*arguments: str) -> Result:
        return CliRunner().invoke(app, ["score", *(str(tmp_path / name) for name in arguments[:2]), *arguments[2:]])

    equal = compare("text", "again")
    assert "parity: every outcome, answer, probability and digest is the same" in equal.stdout
    told = json.loads(compare("text", "blind", "--json").stdout)
    assert [run["run"] for run in told["runs"]] == ["videonorms text encoder", "videonorms blind encoder"]
    assert not told["parity"]
    assert "window_digest" in told["first"]["differs_in"]
    # A written norm is graded, and neither right nor wrong.
    assert {task["task"] for task in told["tasks"]} == {"adherence", "evidence"}
