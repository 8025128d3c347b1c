"""The annotated segments of HSRI, and the questions that each seed draws of them."""

import random
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from pydantic import Field, model_validator

from norm_core.records.flag import Attribute
from norm_core.records.record import record
from norm_core.runtime.config import Config
from norm_core.runtime.wording import count_of
from sim_replays.items.dataset_files import raise_faults, read_annotations
from sim_replays.items.target import Target

FILE = "segments.jsonl"
SEEDS = (0, 1, 2)
CHOICES = ("pre", "post", "rationale", "correction")  # tasks whose distractors are of other segments
TASKS = ("error3", "error2", "attributes", "multi", *CHOICES)
DISTRACTORS = 4

# By task, the number of questions of a seed and the share of each label, as the paper's appendix A states them.
_DETECTION_DRAW = 200, {"error": 0.5, "competence": 0.295, "none": 0.205}
_ATTRIBUTES_DRAW = 70, {"error": 2 / 3, "competence": 1 / 3}
_DRAWS = {
    "error3": _DETECTION_DRAW,
    "error2": _DETECTION_DRAW,
    "attributes": _ATTRIBUTES_DRAW,
    "multi": _ATTRIBUTES_DRAW,
}
_CHOICE_QUESTIONS = 70  # of each other task

OPTION_WORDS: Mapping[str, tuple[str, ...]] = {
    "error3": ("error", "competence", "none"),
    "error2": ("error", "not error"),
    "multi": ("true", "false"),
    "attributes": tuple(Attribute),
}

# The party whose words are shown. The words of the other party would contain the answer.
PARTY_BY_TASK = {"pre": "agent", "post": "user"}


class SegmentKind(StrEnum):
    """The label of a segment: a social error, a competence or neither."""

    ERROR = "error"
    COMPETENCE = "competence"
    NONE = "none"


class HsriLine(Config):
    """One turn; `agent` is the robot."""

    speaker: str = Field(pattern="^(agent|user)$")
    text: str = Field(min_length=1)
    start_s: float = Field(default=0.0, ge=0)
    end_s: float = Field(default=0.0, ge=0)

    @model_validator(mode="after")
    def _check_order(self) -> "HsriLine":
        if self.end_s < self.start_s:
            raise ValueError(
                f"it ends at {self.end_s:g} s, before it begins at {self.start_s:g} s; correct one of the times"
            )
        return self


class HsriSegment(Config):
    """One annotated segment of an interaction."""

    id: str = Field(min_length=1, pattern="^[^#]+$")
    session: str = Field(min_length=1)
    study: str = Field(default="", description="name of its study, such as empathic or wellness")
    kind: SegmentKind
    attributes: tuple[Attribute, ...] = ()
    transcript: tuple[HsriLine, ...] = Field(min_length=1)
    rationale: str = ""
    correction: str = ""
    duration_s: float | None = Field(default=None, gt=0, le=3600)

    @model_validator(mode="after")
    def _check_fields(self) -> "HsriSegment":
        if (self.kind is SegmentKind.NONE) == bool(self.attributes):
            raise ValueError(
                "an error or a competence has attributes, and a segment of neither has none; add or remove them"
            )
        if len(set(self.attributes)) < len(self.attributes):
            raise ValueError("an attribute stands there twice; remove one")
        if self.kind is SegmentKind.ERROR and not (self.rationale and self.correction):
            raise ValueError("an error has a rationale and a correction; add what is missing")
        return self

    def join_words(self, speaker: str) -> str:
        """Join the words of one party."""
        return " ".join(line.text for line in self.transcript if line.speaker == speaker)


@record
class HsriQuestion:
    """One drawn question: the talk that it shows, its options in order, and the indices of the right ones."""

    id: str
    task: str
    session: str
    talk: str
    options: tuple[str, ...]
    right: tuple[int, ...]


def read(path: Path) -> list[HsriSegment]:
    """Read the segments of a folder."""
    segments = read_annotations(path, FILE, HsriSegment, lambda segment: segment.id)
    drawn_tasks = {question.task for question in draw_questions(segments)}
    raise_faults(
        [
            f"{path}: {task}: none of {count_of(len(pool), 'segment')} can be asked about, because each question needs "
            f"{DISTRACTORS} other answers (of other attributes, to rationale and correction); add segments"
            for task in CHOICES
            if (pool := _select_askable(task, segments)) and task not in drawn_tasks
        ]
    )
    return segments


def draw_questions(segments: Sequence[HsriSegment]) -> list[HsriQuestion]:
    """Draw the questions of each seed. An id is SEGMENT#SEED, and a seed always draws the same questions."""
    ordered = sorted(segments, key=lambda segment: segment.id)
    questions: list[HsriQuestion] = []
    for seed in SEEDS:
        for task in TASKS:
            pool = _select_askable(task, ordered)
            draw = random.Random(f"{seed}:{task}")
            for segment in _draw_segments(pool, task, draw):
                question = _draw_question(segment, task, seed, pool, draw)
                if question is not None:
                    questions.append(question)
    return questions


def _draw_segments(pool: Sequence[HsriSegment], task: str, draw: random.Random) -> list[HsriSegment]:
    """Draw segments of each label; for detection, as many of each study."""
    size, shares = _DRAWS.get(task, (_CHOICE_QUESTIONS, dict.fromkeys({segment.kind for segment in pool}, 1.0)))
    studies = sorted({segment.study for segment in pool}) if len(shares) > 2 else [""]
    drawn = []
    for study in studies:
        for kind, share in shares.items():
            candidates = [
                segment for segment in pool if segment.kind == kind and (len(studies) == 1 or segment.study == study)
            ]
            drawn += draw.sample(candidates, min(len(candidates), round(size * share / len(studies))))
    return drawn


def make_targets(questions: Sequence[HsriQuestion]) -> list[Target]:
    """Make the targets of questions; `by` has the seed, so that figures can be split by it."""
    return [
        Target(
            id=question.id,
            task=question.task,
            group=question.session,
            options=len(question.options),
            right=question.right,
            several=question.task == "attributes",
            words=OPTION_WORDS.get(question.task, ()),
            kinds=OPTION_WORDS.get(question.task, ()),
            by={"seed": question.id.rpartition("#")[2]},
        )
        for question in questions
    ]


def _select_askable(task: str, segments: Sequence[HsriSegment]) -> list[HsriSegment]:
    """Return the segments that a task can ask about."""
    can_ask_by_task: dict[str, Callable[[HsriSegment], bool]] = {
        "attributes": lambda segment: segment.kind is not SegmentKind.NONE,
        "multi": lambda segment: segment.kind is not SegmentKind.NONE,
        "pre": lambda segment: segment.kind is SegmentKind.COMPETENCE and _has_both_parties(segment),
        "post": lambda segment: segment.kind is SegmentKind.COMPETENCE and _has_both_parties(segment),
        "rationale": lambda segment: segment.kind is SegmentKind.ERROR,
        "correction": lambda segment: segment.kind is SegmentKind.ERROR,
    }
    can_ask = can_ask_by_task.get(task)
    return [segment for segment in segments if can_ask is None or can_ask(segment)]


def _has_both_parties(segment: HsriSegment) -> bool:
    return bool(segment.join_words("agent").strip() and segment.join_words("user").strip())


def _find_option(segment: HsriSegment, task: str) -> str:
    """Return the text of a segment that is an option of a task."""
    texts = {"rationale": segment.rationale, "correction": segment.correction}
    return texts[task] if task in texts else segment.join_words("user" if task == "pre" else "agent")


def _draw_question(
    segment: HsriSegment, task: str, seed: int, pool: Sequence[HsriSegment], draw: random.Random
) -> HsriQuestion | None:
    """Make a question about a segment, with distractors from the pool; None if these are too few."""
    talk = "\n".join(f"{line.speaker}: {line.text}" for line in segment.transcript)
    talk_shown = segment.join_words(PARTY_BY_TASK[task]) if task in PARTY_BY_TASK else talk
    question_id = f"{segment.id}#{seed}"
    if task not in CHOICES:
        return HsriQuestion(
            id=question_id,
            task=task,
            session=segment.session,
            talk=talk_shown,
            options=OPTION_WORDS[task],
            right=_find_right(segment, task),
        )
    right = _find_option(segment, task)
    others = [other for other in pool if other.id != segment.id and _find_option(other, task) != right]
    if task in {"rationale", "correction"}:
        others = [other for other in others if set(other.attributes) != set(segment.attributes)]
    texts = sorted({_find_option(other, task) for other in others})
    if len(texts) < DISTRACTORS:
        return None
    options = [right, *draw.sample(texts, DISTRACTORS)]
    draw.shuffle(options)
    return HsriQuestion(
        id=question_id,
        task=task,
        session=segment.session,
        talk=talk_shown,
        options=tuple(options),
        right=(options.index(right),),
    )


def _find_right(segment: HsriSegment, task: str) -> tuple[int, ...]:
    """Return the indices of the right options in a task of fixed options."""
    if task == "error3":
        return (list(SegmentKind).index(segment.kind),)
    if task == "error2":
        return (0 if segment.kind is SegmentKind.ERROR else 1,)
    if task == "multi":
        return (0 if len(segment.attributes) > 1 else 1,)
    return tuple(sorted(list(Attribute).index(attribute) for attribute in segment.attributes))
