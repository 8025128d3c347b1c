"""HSRI (SHREC): eight tasks on segments of human-robot talk, read from a folder, with items drawn by seed."""

import random
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from statistics import mean, stdev

import numpy as np
from pydantic import Field, model_validator

from norm_core.evaluation.f1 import confusion, f1_score, macro_f1
from norm_core.evaluation.figures import Figure, share
from norm_core.evaluation.intervals import draw_clusters, percentile_interval
from norm_core.records.flag import Attribute
from norm_core.records.record import record
from norm_core.runtime.config import Config
from sim_replays.suites.dataset_files import annotations, raise_for
from sim_replays.suites.target import Predictions, Suite, Target, first_pick, picks_target

FILE = "segments.jsonl"
SEEDS = (0, 1, 2)
SAMPLED = {"error3": 200, "units": 200, "error2": 200}
SAMPLED_ELSE = 70
DISTRACTORS = 4
_DRAWS = 1000
WORDS: Mapping[str, tuple[str, ...]] = {
    "error3": ("error", "competence", "none"),
    "units": ("error", "competence", "none"),  # the same question, answered by the units of the segment
    "error2": ("error", "not error"),
    "multi": ("true", "false"),
    "attributes": tuple(Attribute),
}
# The party whose words are given. The other party's words would contain the answer.
TOLD = {"pre": "agent", "post": "user"}
CHOICES = ("pre", "post", "rationale", "correction")
TASKS = ("error3", "units", "error2", "attributes", "multi", *CHOICES)
COLUMNS = (
    "error3_accuracy", "error3_f1", "units_accuracy", "units_f1", "error2_accuracy", "error2_f1", "attributes_exact",
    "attributes_f1", "attributes_partial", "multi_accuracy", "multi_f1", "pre", "post", "rationale", "correction",
)  # fmt: skip


class SegmentKind(StrEnum):
    """The label of a segment: a social error, a competence or neither."""

    ERROR = "error"
    COMPETENCE = "competence"
    NONE = "none"


class HsriLine(Config):
    """One turn. `agent` is the robot."""

    speaker: str = Field(pattern="^(agent|user)$")
    text: str = Field(min_length=1)
    start_s: float = Field(default=0.0, ge=0)
    end_s: float = Field(default=0.0, ge=0)

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> "HsriLine":
        if self.end_s < self.start_s:
            raise ValueError(
                f"it ends at {self.end_s:g} s, before it begins at {self.start_s:g} s; correct one of the times"
            )
        return self


class HsriSegment(Config):
    """One annotated segment of an interaction."""

    id: str = Field(min_length=1, pattern="^[^#]+$")
    session: str = Field(min_length=1)
    kind: SegmentKind
    attributes: tuple[Attribute, ...] = ()
    transcript: tuple[HsriLine, ...] = Field(min_length=1)
    rationale: str = ""
    correction: str = ""
    duration_s: float | None = Field(default=None, gt=0, le=3600)

    @model_validator(mode="after")
    def _is_explained(self) -> "HsriSegment":
        if (self.kind is SegmentKind.NONE) == bool(self.attributes):
            raise ValueError(
                "an error or a competence has attributes, and a segment of neither has none; add or remove them"
            )
        if len(set(self.attributes)) < len(self.attributes):
            raise ValueError("an attribute stands there twice; remove one")
        if self.kind is SegmentKind.ERROR and not (self.rationale and self.correction):
            raise ValueError("an error has a rationale and a correction; add what is missing")
        return self

    def said_by(self, speaker: str) -> str:
        """Join the words of one party."""
        return " ".join(line.text for line in self.transcript if line.speaker == speaker)


@record
class HsriQuestion:
    """One drawn question: its input, and its options in answer order."""

    id: str
    task: str
    session: str
    told: str
    options: tuple[str, ...]
    right: tuple[int, ...]


def read(path: Path) -> list[HsriSegment]:
    """Read and check the segments of a folder, enough for every task."""
    found = annotations(path, FILE, HsriSegment, lambda one: one.id)
    faults = [
        f"{path}: {task}: {len(pool)} segments can be asked about, and a question needs {DISTRACTORS + 1}"
        for task in CHOICES
        if (pool := _pool(task, found)) and len(pool) <= DISTRACTORS
    ]
    raise_for(faults)
    return found


def draw_questions(segments: Sequence[HsriSegment], seeds: Sequence[int] = SEEDS) -> list[HsriQuestion]:
    """Draw the questions of each seed. An id is SEGMENT#SEED; the same seed draws the same questions."""
    ordered = sorted(segments, key=lambda segment: segment.id)
    made: list[HsriQuestion] = []
    for seed in seeds:
        for task in TASKS:
            pool = _pool(task, ordered)
            # Both forms of the first question are about the same segments.
            chance = random.Random(f"{seed}:{'error3' if task == 'units' else task}")
            for segment in chance.sample(pool, min(len(pool), SAMPLED.get(task, SAMPLED_ELSE))):
                if (question := _question(segment, task, seed, pool, chance)) is not None:
                    made.append(question)
    return made


def targets(questions: Sequence[HsriQuestion]) -> list[Target]:
    """List the right answers; `by` holds the seed, so that results can be split by it."""
    return [
        Target(
            id=one.id,
            task=one.task,
            group=one.session,
            options=len(one.options),
            right=one.right,
            several=one.task == "attributes",
            words=WORDS.get(one.task, ()),
            kinds=WORDS.get(one.task, ()),
            by={"seed": one.id.rpartition("#")[2]},
        )
        for one in questions
    ]


def figures(targets: Sequence[Target], predictions: Predictions) -> dict[str, Figure]:
    """Compute the paper's metrics. Several seeds give their mean, with the standard deviation as the interval."""
    seeds = sorted({target.by["seed"] for target in targets})
    by_seed = [_of_one_seed([t for t in targets if t.by["seed"] == seed], predictions) for seed in seeds]
    if len(by_seed) == 1:
        return by_seed[0]
    found = {}
    for column in COLUMNS:
        cards = [card[column] for card in by_seed if card[column].count]
        values = [card.value for card in cards] or [float("nan")]
        spread = stdev(values) if len(values) > 1 else 0.0
        middle = mean(values)
        count = sum(card.count for card in cards)
        found[column] = Figure(value=middle, low=middle - spread, high=middle + spread, count=count)
    return found


HSRI = Suite(
    name="hsri",
    tasks=TASKS,
    columns=COLUMNS,
    read=lambda path, _: targets(draw_questions(read(path))),
    figures=figures,
    ranges="mean ± sd of seeds",
)


def _pool(task: str, segments: Sequence[HsriSegment]) -> list[HsriSegment]:
    """List the segments that fit a task."""
    fits: dict[str, Callable[[HsriSegment], bool]] = {
        "attributes": lambda one: one.kind is not SegmentKind.NONE,
        "multi": lambda one: one.kind is not SegmentKind.NONE,
        "pre": lambda one: one.kind is SegmentKind.COMPETENCE and _has_both(one),
        "post": lambda one: one.kind is SegmentKind.COMPETENCE and _has_both(one),
        "rationale": lambda one: one.kind is SegmentKind.ERROR,
        "correction": lambda one: one.kind is SegmentKind.ERROR,
    }
    fit = fits.get(task)
    return [segment for segment in segments if fit is None or fit(segment)]


def _has_both(segment: HsriSegment) -> bool:
    return bool(segment.said_by("agent").strip() and segment.said_by("user").strip())


def _option(segment: HsriSegment, task: str) -> str:
    """Return the text that answers a task on a segment."""
    told = {"rationale": segment.rationale, "correction": segment.correction}
    return told[task] if task in told else segment.said_by("user" if task == "pre" else "agent")


def _question(
    segment: HsriSegment, task: str, seed: int, pool: Sequence[HsriSegment], chance: random.Random
) -> HsriQuestion | None:
    talk = "\n".join(f"{line.speaker}: {line.text}" for line in segment.transcript)
    told = segment.said_by(TOLD[task]) if task in TOLD else talk
    name = f"{segment.id}#{seed}"
    if task not in CHOICES:
        return HsriQuestion(
            id=name, task=task, session=segment.session, told=told, options=WORDS[task], right=_right(segment, task)
        )
    right = _option(segment, task)
    others = [one for one in pool if one.id != segment.id and _option(one, task) != right]
    if task in {"rationale", "correction"}:
        others = [one for one in others if set(one.attributes) != set(segment.attributes)]
    texts = sorted({_option(one, task) for one in others})
    if len(texts) < DISTRACTORS:
        return None
    options = [right, *chance.sample(texts, DISTRACTORS)]
    chance.shuffle(options)
    place = options.index(right)
    return HsriQuestion(id=name, task=task, session=segment.session, told=told, options=tuple(options), right=(place,))


def _right(segment: HsriSegment, task: str) -> tuple[int, ...]:
    if task in {"error3", "units"}:
        return (list(SegmentKind).index(segment.kind),)
    if task == "error2":
        return (0 if segment.kind is SegmentKind.ERROR else 1,)
    if task == "multi":
        return (0 if len(segment.attributes) > 1 else 1,)
    return tuple(sorted(list(Attribute).index(attribute) for attribute in segment.attributes))


def _of_one_seed(targets: Sequence[Target], predictions: Predictions) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for task in ("error3", "units", "error2", "multi"):
        asked = [target for target in targets if target.task == task]
        picks = [first_pick(target, predictions) for target in asked]
        found[f"{task}_accuracy"] = _accuracy(asked, predictions)
        found[f"{task}_f1"] = macro_f1(confusion([t.right[0] for t in asked], picks, len(WORDS[task])))
    asked = [target for target in targets if target.task == "attributes"]
    groups = [target.group for target in asked]
    sets = [picks_target(target, predictions) for target in asked]
    exact = [float(one is not None and set(one) == set(t.right)) for one, t in zip(sets, asked, strict=True)]
    partial = [float(bool(set(one or ()) & set(t.right))) for one, t in zip(sets, asked, strict=True)]
    found["attributes_exact"], found["attributes_partial"] = share(exact, groups), share(partial, groups)
    found["attributes_f1"] = _macro_f1_of_sets(asked, sets)
    for task in CHOICES:
        found[task] = _accuracy([target for target in targets if target.task == task], predictions)
    return {column: found[column] for column in COLUMNS}


def _accuracy(asked: Sequence[Target], predictions: Predictions) -> Figure:
    hits = [float(first_pick(target, predictions) in target.right) for target in asked]
    return share(hits, [target.group for target in asked])


def _macro_f1_of_sets(asked: Sequence[Target], sets: Sequence[tuple[int, ...] | None]) -> Figure:
    """Compute the mean F1 over attributes, with a bootstrap interval over sessions."""
    if not asked:
        return share([], [])
    wanted = np.array([[place in target.right for place in range(len(Attribute))] for target in asked])
    found = np.array([[place in (one or ()) for place in range(len(Attribute))] for one in sets])
    names, at = np.unique([target.group for target in asked], return_inverse=True)
    of_session = np.zeros((2, len(names), len(Attribute)))
    np.add.at(of_session[0], at, wanted & found)
    np.add.at(of_session[1], at, wanted.astype(int) + found)
    drawn = of_session[:, draw_clusters(len(names), _DRAWS)].sum(axis=2)
    value, (low, high) = (
        float(f1_score(*of_session.sum(axis=1)).mean()),
        percentile_interval(f1_score(*drawn).mean(axis=-1)),
    )
    return Figure(value=100 * value, low=100 * low, high=100 * high, count=len(asked))
