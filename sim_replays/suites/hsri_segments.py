"""Read HSRI's annotated segments from a folder, and draw the questions of each seed."""

import random
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from pydantic import Field, model_validator

from norm_core.records.flag import Attribute
from norm_core.records.record import record
from norm_core.runtime.config import Config
from sim_replays.items.dataset_files import annotations, raise_for
from sim_replays.items.target import Target

FILE = "segments.jsonl"
SEEDS = (0, 1, 2)
# How many questions a seed draws, and the share of each label: those that the paper's appendix A states.
_DETECTION = 200, {"error": 0.5, "competence": 0.295, "none": 0.205}
_ATTRIBUTES = 70, {"error": 2 / 3, "competence": 1 / 3}
SAMPLED = {"error3": _DETECTION, "error2": _DETECTION, "attributes": _ATTRIBUTES, "multi": _ATTRIBUTES}
SAMPLED_ELSE = 70
DISTRACTORS = 4


WORDS: Mapping[str, tuple[str, ...]] = {
    "error3": ("error", "competence", "none"),
    "error2": ("error", "not error"),
    "multi": ("true", "false"),
    "attributes": tuple(Attribute),
}


# The party whose words are given. The other party's words would contain the answer.
TOLD = {"pre": "agent", "post": "user"}
CHOICES = ("pre", "post", "rationale", "correction")
TASKS = ("error3", "error2", "attributes", "multi", *CHOICES)


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
    study: str = Field(default="", description="the study it is from, as empathic or wellness")
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
    segments = annotations(path, FILE, HsriSegment, lambda segment: segment.id)
    faults = [
        f"{path}: {task}: {len(pool)} segments can be asked about, and a question needs {DISTRACTORS + 1}"
        for task in CHOICES
        if (pool := _pool(task, segments)) and len(pool) <= DISTRACTORS
    ]
    raise_for(faults)
    return segments


def draw_questions(segments: Sequence[HsriSegment]) -> list[HsriQuestion]:
    """Draw the questions of each seed. An id is SEGMENT#SEED; the same seed draws the same questions."""
    ordered = sorted(segments, key=lambda segment: segment.id)
    questions: list[HsriQuestion] = []
    for seed in SEEDS:
        for task in TASKS:
            pool = _pool(task, ordered)
            chance = random.Random(f"{seed}:{task}")
            for segment in _sample(pool, task, chance):
                if (question := _question(segment, task, seed, pool, chance)) is not None:
                    questions.append(question)
    return questions


def _sample(pool: Sequence[HsriSegment], task: str, chance: random.Random) -> list[HsriSegment]:
    """Draw segments of each label; for detection as many of each study as of any other."""
    size, shares = SAMPLED.get(task, (SAMPLED_ELSE, dict.fromkeys({segment.kind for segment in pool}, 1.0)))
    studies = sorted({segment.study for segment in pool}) if len(shares) > 2 else [""]
    drawn = []
    for study in studies:
        for kind, share in shares.items():
            part = [s for s in pool if s.kind == kind and (len(studies) == 1 or s.study == study)]
            drawn += chance.sample(part, min(len(part), round(size * share / len(studies))))
    return drawn


def targets(questions: Sequence[HsriQuestion]) -> list[Target]:
    """List the right answers; `by` holds the seed, so that results can be split by it."""
    return [
        Target(
            id=question.id,
            task=question.task,
            group=question.session,
            options=len(question.options),
            right=question.right,
            several=question.task == "attributes",
            words=WORDS.get(question.task, ()),
            kinds=WORDS.get(question.task, ()),
            by={"seed": question.id.rpartition("#")[2]},
        )
        for question in questions
    ]


def _pool(task: str, segments: Sequence[HsriSegment]) -> list[HsriSegment]:
    fits: dict[str, Callable[[HsriSegment], bool]] = {
        "attributes": lambda segment: segment.kind is not SegmentKind.NONE,
        "multi": lambda segment: segment.kind is not SegmentKind.NONE,
        "pre": lambda segment: segment.kind is SegmentKind.COMPETENCE and _has_both(segment),
        "post": lambda segment: segment.kind is SegmentKind.COMPETENCE and _has_both(segment),
        "rationale": lambda segment: segment.kind is SegmentKind.ERROR,
        "correction": lambda segment: segment.kind is SegmentKind.ERROR,
    }
    fit = fits.get(task)
    return [segment for segment in segments if fit is None or fit(segment)]


def _has_both(segment: HsriSegment) -> bool:
    return bool(segment.said_by("agent").strip() and segment.said_by("user").strip())


def _option(segment: HsriSegment, task: str) -> str:
    texts = {"rationale": segment.rationale, "correction": segment.correction}
    return texts[task] if task in texts else segment.said_by("user" if task == "pre" else "agent")


def _question(
    segment: HsriSegment, task: str, seed: int, pool: Sequence[HsriSegment], chance: random.Random
) -> HsriQuestion | None:
    talk = "\n".join(f"{line.speaker}: {line.text}" for line in segment.transcript)
    talk_shown = segment.said_by(TOLD[task]) if task in TOLD else talk
    name = f"{segment.id}#{seed}"
    if task not in CHOICES:
        return HsriQuestion(
            id=name,
            task=task,
            session=segment.session,
            told=talk_shown,
            options=WORDS[task],
            right=_right(segment, task),
        )
    right = _option(segment, task)
    others = [other for other in pool if other.id != segment.id and _option(other, task) != right]
    if task in {"rationale", "correction"}:
        others = [other for other in others if set(other.attributes) != set(segment.attributes)]
    texts = sorted({_option(other, task) for other in others})
    if len(texts) < DISTRACTORS:
        return None
    options = [right, *chance.sample(texts, DISTRACTORS)]
    chance.shuffle(options)
    place = options.index(right)
    return HsriQuestion(
        id=name, task=task, session=segment.session, told=talk_shown, options=tuple(options), right=(place,)
    )


def _right(segment: HsriSegment, task: str) -> tuple[int, ...]:
    if task == "error3":
        return (list(SegmentKind).index(segment.kind),)
    if task == "error2":
        return (0 if segment.kind is SegmentKind.ERROR else 1,)
    if task == "multi":
        return (0 if len(segment.attributes) > 1 else 1,)
    return tuple(sorted(list(Attribute).index(attribute) for attribute in segment.attributes))
