"""VideoNorms: adherence or violation in 15 s clips, the evidence and the norm, read from a folder."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from pydantic import Field

from norm_core.evaluation.f1 import class_f1, confusion, macro_f1
from norm_core.evaluation.figures import Figure, average_grade
from norm_core.runtime.config import Config
from sim_replays.suites.dataset_files import annotations
from sim_replays.suites.target import Predictions, Suite, Target, first_pick

FILE = "annotations.jsonl"
TASKS = ("adherence", "evidence", "norm")
LOWEST_GRADE = 1.0
COLUMNS = (
    "f1_adherence", "f1_violation", "macro_f1",
    "evidence_f1_adherence", "evidence_f1_violation", "evidence_macro_f1", "verbal", "nonverbal", "norm",
)  # fmt: skip


class Side(StrEnum):
    """The answers to the first two tasks, in order of position."""

    ADHERENCE = "adherence"
    VIOLATION = "violation"


class Culture(StrEnum):
    """The country of a clip."""

    US = "us"
    CN = "cn"


class Annotation(Config):
    """One norm in one clip, with the evidence and wording of every annotator."""

    id: str = Field(min_length=1)
    clip: str = Field(min_length=1)
    show: str = Field(min_length=1)
    culture: Culture
    category: str = Field(min_length=1)
    norm: str = Field(min_length=1)
    label: Side
    verbal: tuple[str, ...] = ()
    nonverbal: tuple[str, ...] = ()
    other_norms: tuple[str, ...] = ()
    transcript: str = ""
    duration_s: float = Field(default=15.0, gt=0, le=3600)


def read(path: Path) -> list[Annotation]:
    """Read and check the annotations of a folder."""
    return annotations(path, FILE, Annotation, lambda one: one.id)


def targets(found: Sequence[Annotation]) -> list[Target]:
    """Make three questions per annotation."""
    made = []
    for one in found:
        common = {"culture": one.culture.value, "show": one.show, "category": one.category}
        for task in TASKS:
            text = task == "norm"
            made.append(
                Target(
                    id=one.id,
                    task=task,
                    group=one.clip,
                    options=0 if text else len(Side),
                    right=() if text else (list(Side).index(one.label),),
                    words=() if text else tuple(Side),
                    kinds=() if text else tuple(Side),
                    by=common,
                    references=(one.norm, *one.other_norms) if text else (),
                    evidence={"verbal": one.verbal, "nonverbal": one.nonverbal} if task == "evidence" else {},
                )
            )
    return made


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


VIDEONORMS = Suite(
    name="videonorms",
    tasks=TASKS,
    columns=COLUMNS,
    read=lambda path, _: targets(read(path)),
    figures=figures,
    broken_down_by=("culture", "show", "category"),
)


def _grades(targets: Sequence[Target], predictions: Predictions, name: str) -> list[float]:
    """Return the grades, once anything is graded. A text that was not given or not graded gets the lowest."""
    found = [predictions.get(target.key) for target in targets]
    grades = [one.grades.get(name, LOWEST_GRADE) if one is not None else LOWEST_GRADE for one in found]
    return grades if any(one is not None and one.grades for one in found) else []
