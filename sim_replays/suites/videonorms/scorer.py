"""Score VideoNorms: F1 of the labels, and a judge's grades of written answers."""

from collections.abc import Sequence

from norm_core.evaluation.f1 import class_f1, confusion, macro_f1
from norm_core.evaluation.figures import Figure, average_grade
from sim_replays.suites.target import Predictions, Target, first_pick
from sim_replays.suites.videonorms.reader import Side

COLUMNS = (
    "f1_adherence", "f1_violation", "macro_f1",
    "evidence_f1_adherence", "evidence_f1_violation", "evidence_macro_f1", "verbal", "nonverbal", "norm",
)  # fmt: skip
LOWEST_GRADE = 1.0


def figures(targets: Sequence[Target], predictions: Predictions) -> dict[str, Figure]:
    """Compute F1 with Takahashi's intervals. A judge grades; evidence counts only where the label was right."""
    found: dict[str, Figure] = {}
    for task, prefix in (("adherence", ""), ("evidence", "evidence_")):
        asked = [target for target in targets if target.task == task]
        picks = [first_pick(target, predictions) for target in asked]
        counts = confusion([target.right[0] for target in asked], picks, len(Side))
        found[f"{prefix}f1_adherence"], found[f"{prefix}f1_violation"] = class_f1(counts, 0), class_f1(counts, 1)
        found[f"{prefix}macro_f1"] = macro_f1(counts)
    right = [t for t in targets if t.task == "evidence" and first_pick(t, predictions) in {*t.right, None}]
    for name in ("verbal", "nonverbal"):
        found[name] = average_grade(_grades(right, predictions, f"{name}_grade"))
    found["norm"] = average_grade(_grades([t for t in targets if t.task == "norm"], predictions, "grade"))
    return {column: found[column] for column in COLUMNS}


def _grades(targets: Sequence[Target], predictions: Predictions, name: str) -> list[float]:
    """Return the grades, once anything is graded. A text that was not given or not graded gets the lowest."""
    found = [predictions.get(target.key) for target in targets]
    grades = [one.grades.get(name, LOWEST_GRADE) if one is not None else LOWEST_GRADE for one in found]
    return grades if any(one is not None and one.grades for one in found) else []
