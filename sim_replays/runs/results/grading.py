"""Grade written answers from 1 to 5 with a model, against every reference. Grades are never asked twice."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from norm_core.engines.engine import Engine
from norm_core.engines.prompt import Prompt, Question, Quoted, Text
from norm_core.engines.prompt_file import prompt_file
from norm_core.records.outcome import Outcome
from norm_core.records.record import record
from norm_core.runtime.json_lines import append_lines, drop_cut_line, read_lines
from sim_replays.items.target import Key, Predictions, SuiteError, Target

GRADES = "grades.jsonl"
_PROMPTS = prompt_file("grades", "sim_replays.runs.results")
_GRADE = Question(parts=(Text(text="Which grade does the text get?"),), options=("1", "2", "3", "4", "5"))
# By task: the graded fields of the written answer, and the scorer's names of their grades.
FIELDS = {"norm": {"norm": "grade"}, "evidence": {"verbal": "verbal_grade", "nonverbal": "nonverbal_grade"}}


@record
class Grade:
    """One text against one reference. `grade` is 0 where the grader gave none, for the given `reason`."""

    id: str
    task: str
    kind: str
    reference: int
    judge: str
    weights_sha256: str = ""
    prompt_digest: str = ""
    grade: int = 0
    reason: str = ""

    @property
    def of(self) -> tuple[Key, str]:
        """The question's key and the kind of text that was graded."""
        return (self.id, self.task), self.kind


def pairs(targets: list[Target], predictions: Predictions) -> list[tuple[Target, str, int, str, str]]:
    """List what to grade: question, kind of text and texts. Evidence counts only where the label was right."""
    to_grade = []
    for target in targets:
        prediction = predictions.get(target.key)
        if prediction is None or prediction.outcome is not Outcome.ANSWERED or target.task not in FIELDS:
            continue
        if target.right and prediction.chosen != target.right:
            continue
        written = _fields(prediction.text)
        for kind in FIELDS[target.task]:
            texts = target.evidence.get(kind, target.references)
            to_grade += [
                (target, kind, place, text, written[kind]) for place, text in enumerate(texts) if kind in written
            ]
    return to_grade


def grade_answers(folder: Path, targets: list[Target], predictions: Predictions, grader: Engine) -> Iterator[Grade]:
    """Ask for the missing grades, and write each to the folder at once."""
    drop_cut_line(folder / GRADES)
    known = read_grades(folder)
    if others := {graded.judge for graded in known} - {grader.model_info.model}:
        raise SuiteError(f"{folder / GRADES}: holds grades of {', '.join(others)}: move them away to grade it anew")
    done = keys_graded(known)
    for target, kind, place, reference, written in pairs(targets, predictions):
        if (target.key, kind, place) in done:
            continue
        [scores] = grader.ask_many(_grading_prompt(kind, reference, written), [_GRADE])
        graded = Grade(
            id=target.id,
            task=target.task,
            kind=kind,
            reference=place,
            judge=grader.model_info.model,
            weights_sha256=grader.model_info.weights_sha256,
            prompt_digest=scores.prompt_digest,
            grade=0 if scores.best is None else scores.best + 1,
            reason=scores.reason,
        )
        append_lines(folder / GRADES, [graded])
        yield graded


def keys_graded(grades: Sequence[Grade]) -> set[tuple[Key, str, int]]:
    """Return what got a grade."""
    return {(*graded.of, graded.reference) for graded in grades if graded.grade}


def read_grades(folder: Path) -> list[Grade]:
    """Read the grades so far. Skips a truncated line."""
    return list(read_lines(folder / GRADES, Grade))


def best_by_question(graded: list[Grade]) -> Mapping[Key, Mapping[str, float]]:
    """Return the best grade of each question over its references, by the scorer's names."""
    best: dict[Key, dict[str, float]] = {}
    for grade in graded:
        key, kind = grade.of
        if grade.grade:
            names = best.setdefault(key, {})
            name = FIELDS[grade.task][kind]
            names[name] = max(names.get(name, 0.0), float(grade.grade))
    return best


def _fields(text: str) -> dict[str, str]:
    """Split a written answer into fields. Text that is no such JSON counts as a norm."""
    try:
        plain = json.loads(text)
    except ValueError:
        return {"norm": text}
    if not isinstance(plain, dict):
        return {}
    return {str(name): value for name, value in plain.items() if isinstance(value, str)}


def _grading_prompt(kind: str, reference: str, written: str) -> Prompt:
    """Return the two texts and the meaning of each grade for texts of that kind."""
    return Prompt(
        version=_PROMPTS.version,
        parts=(
            Text(text=_PROMPTS.texts["task"]),
            Text(text=_PROMPTS.texts["rubric"][kind]),
            Quoted(text=reference, label="reference"),
            Quoted(text=written, label="to be graded"),
        ),
    )
