"""Read the annotations of VideoNorms from a folder."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from pydantic import Field

from norm_core.runtime.config import Config
from sim_replays.suites.dataset_files import annotations
from sim_replays.suites.target import Target

FILE = "annotations.jsonl"


TASKS = ("adherence", "evidence", "norm")


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
    start_s: float = Field(default=0.0, ge=0, description="where in the clip the moment begins that the norm is about")


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
