"""VideoNorms: adherence or violation in 15 s clips, the evidence and the norm."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path

from pydantic import Field

from norm_core.engines.options import strip_reasoning
from norm_core.engines.prompt_file import load_prompt_file
from norm_core.files.data_files import shipped_file
from norm_core.records.episode import Query
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.config import Config
from scoring.f1 import class_f1, count_confusions, macro_f1
from scoring.figures import Figure, estimate_grade
from sim_replays.items.dataset_files import annotations
from sim_replays.items.item_bag import in_order, shots_of, utterance_of
from sim_replays.items.run_config import RunConfig, RunItem, RunItems
from sim_replays.items.target import Predictions, Target, first_pick
from sim_replays.suites.controls import most_frequent, once, over_draws, prior, uniform
from sim_replays.suites.suite import Form, Reading, Suite, json_object
from sim_replays.suites.suite_questions import CULTURES

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
    """One norm in one clip, with the evidence and wording of every annotator.

    `label` is the majority's; null where annotators have none, and then only the norm is asked.
    """

    id: str = Field(min_length=1)
    clip: str = Field(min_length=1)
    show: str = Field(min_length=1)
    culture: Culture
    category: str = Field(min_length=1)
    norm: str = Field(min_length=1)
    label: Side | None
    verbal: tuple[str, ...] = ()
    nonverbal: tuple[str, ...] = ()
    other_norms: tuple[str, ...] = ()
    transcript: str = ""
    duration_s: float = Field(default=15.0, gt=0, le=3600)
    start_s: float = Field(default=0.0, ge=0, description="where in the clip the moment begins that the norm is about")

    @property
    def tasks(self) -> tuple[str, ...]:
        """What is asked about it."""
        return TASKS if self.label else ("norm",)


def read(path: Path) -> list[Annotation]:
    """Read and check the annotations of a folder."""
    return annotations(path, FILE, Annotation, lambda annotation: annotation.id)


def targets(norms: Sequence[Annotation]) -> list[Target]:
    """Make the questions of each annotation."""
    questions = []
    for annotation in norms:
        common = {"culture": annotation.culture.value, "show": annotation.show, "category": annotation.category}
        for task in annotation.tasks:
            text = task == "norm"
            questions.append(
                Target(
                    id=annotation.id,
                    task=task,
                    group=annotation.clip,
                    options=0 if text else len(Side),
                    right=() if text or not annotation.label else (list(Side).index(annotation.label),),
                    words=() if text else tuple(Side),
                    kinds=() if text else tuple(Side),
                    by=common,
                    references=(annotation.norm, *annotation.other_norms) if text else (),
                    evidence={"verbal": annotation.verbal, "nonverbal": annotation.nonverbal}
                    if task == "evidence"
                    else {},
                )
            )
    return questions


_NAMES = (("adhere", "遵守"), ("violat", "违反"))  # of each side, as a reply begins them
# The labelled lines of the paper's output format.
_LINE = r"^\W*(?:{})\W*[:：]\s*(.+)$"
_FIELDS = {
    "label": "label|adherence/violation|遵守/违反",
    "verbal": "verbal(?: evidence)?|语言证据",
    "nonverbal": "non-?verbal(?: evidence)?|非语言证据",
    "norm": "(?:specific )?norm|具体规范",
}


def label(query: Query, reply: str) -> Reading | None:
    """Read `Adherence/Violation: Adherence`; else the one side that the whole reply names."""
    fields, strict = _fields(reply)
    place = _side(fields.get("label", ""))
    if place is None and "label" not in fields:
        place, strict = _side(strip_reasoning(reply)), False
    return None if place is None else Reading(chosen=(place,), strict=strict)


def evidence(query: Query, reply: str) -> Reading | None:
    """Read the lines of a label and of both kinds of evidence."""
    fields, strict = _fields(reply)
    place = _side(fields.get("label", ""))
    texts = {name: fields[name].strip() for name in ("verbal", "nonverbal") if fields.get(name, "").strip()}
    if place is None or len(texts) < 2:
        return None
    return Reading(chosen=(place,), text=json.dumps(texts, ensure_ascii=False), strict=strict)


def norm(query: Query, reply: str) -> Reading | None:
    """Read `Specific Norm: ...`."""
    fields, strict = _fields(reply)
    text = fields.get("norm", "").strip()
    return Reading(text=json.dumps({"norm": text}, ensure_ascii=False), strict=strict) if text else None


FORMS: Mapping[str, Form] = {"adherence": label, "evidence": evidence, "norm": norm}


def _fields(reply: str) -> tuple[dict[str, str], bool]:
    """Return the fields of labelled lines, or of a JSON object; and whether they have the asked form, which is lines.

    A field that stands there twice, and differs, is left out.
    """
    plain = json_object(reply)
    if plain is not None:
        return {name: value for name, value in plain.items() if isinstance(value, str)}, False
    flags = re.MULTILINE | re.IGNORECASE
    values = {
        name: {value.strip(" []") for value in re.findall(_LINE.format(names), strip_reasoning(reply), flags)}
        for name, names in _FIELDS.items()
    }
    return {name: value for name, lines in values.items() if len(lines) == 1 for value in lines}, True


def _side(text: str) -> int | None:
    """Return the one side that a text names; None for none or both."""
    side_text = text.casefold()
    named = [any(name in side_text for name in names) for names in _NAMES]
    return named.index(True) if sum(named) == 1 else None


PAPER_FRAMES = 32


class NormSetting(StrEnum):
    """The input given for a clip of VideoNorms."""

    GIVEN = "transcript-given"
    WHISPER = "whisper"  # the ears' transcript of the clip's sound
    TEXT = "text"  # the dataset's transcript, without images
    BLIND = "blind"


def items(asking: RunConfig) -> RunItems:
    """Make one episode per norm in a clip, with all its questions."""
    data, setting = Path(asking.data), NormSetting(asking.setting)
    annotations = read(data)
    ears = _ears(data, asking) if setting is NormSetting.WHISPER else None
    asked = []
    for annotation in annotations:
        transcript = annotation.transcript if setting in {NormSetting.GIVEN, NormSetting.TEXT} else ""
        utterances = ears(annotation.clip, CULTURES[annotation.culture]) if ears else _lines(annotation.id, transcript)
        pictured = setting in {NormSetting.GIVEN, NormSetting.WHISPER}
        asked.append(
            RunItem(
                id=annotation.id,
                queries=tuple(
                    bare_query(annotation, task, utterances) if asking.bare else _norm_query(annotation, task)
                    for task in annotation.tasks
                ),
                shots=shots_of(data, asking, PAPER_FRAMES, annotation.clip, annotation.duration_s) if pictured else (),
                utterances=utterances,
                orders={f"{annotation.id}:{task}": tuple(range(len(Side))) for task in annotation.tasks},
            )
        )
    file = data / FILE if data.is_dir() else data
    return RunItems(asked=tuple(asked), targets=tuple(targets(annotations)), files=(file,))


_TEXTS = load_prompt_file("videonorms_prompts", "sim_replays.suites").texts


def bare_query(annotation: Annotation, task: str, utterances: Sequence[Utterance]) -> Query:
    """Make a query of the paper's whole prompt, in the clip's own language."""
    lines = [
        f"{utterance.speaker_id}: {utterance.text}" if utterance.speaker_id else utterance.text
        for utterance in utterances
    ]
    prompt = _TEXTS[annotation.culture.value][task].format(
        ts=f"{annotation.start_s:g}", transcript="\n".join(lines), category=annotation.category, norm=annotation.norm
    )
    return replace(_norm_query(annotation, task), question=prompt, style=task)


def _norm_query(annotation: Annotation, task: str) -> Query:
    """Make a query that states the norm and its category, or only the category if it asks for the norm."""
    return Query(
        stamp_ns=0,
        query_id=f"{annotation.id}:{task}",
        episode_id=annotation.id,
        task=task,
        question=annotation.category if task == "norm" else f"{annotation.category}: {annotation.norm}",
        style=annotation.culture.value,
        options=() if task == "norm" else tuple(map(str, Side)),
    )


def _lines(name: str, text: str) -> tuple[Utterance, ...]:
    """Split a transcript into one utterance per line, in order. A line may name its speaker before a colon."""
    utterances = []
    for place, line in enumerate(line for line in text.splitlines() if line.strip()):
        who, colon, words = line.partition(": ")
        utterances.append(
            utterance_of(f"{name}-{place}", Speaker.UNKNOWN, words if colon else line, who if colon else "")
        )
    return tuple(in_order(utterances))


def _ears(data: Path, asking: RunConfig) -> Callable[[str, str], tuple[Utterance, ...]]:
    # A late import: Whisper takes seconds to load.
    transcriber = import_module("sim_replays.items.clip_hearing").ClipTranscriber(asking.whisper)
    folder = Path(asking.pictures) if asking.pictures else data if data.is_dir() else data.parent
    return partial(transcriber.heard, folder)


COLUMNS = (
    "f1_adherence", "f1_violation", "macro_f1",
    "evidence_f1_adherence", "evidence_f1_violation", "evidence_macro_f1", "verbal", "nonverbal", "norm",
)  # fmt: skip


def figures(targets: Sequence[Target], predictions: Predictions) -> dict[str, Figure]:
    """Compute F1 with Takahashi's intervals. A judge grades; evidence counts only where the label was right."""
    figures_by_name: dict[str, Figure] = {}
    for task, prefix in (("adherence", ""), ("evidence", "evidence_")):
        asked = [target for target in targets if target.task == task]
        picks = [first_pick(target, predictions) for target in asked]
        counts = count_confusions([target.right[0] for target in asked], picks, len(Side))
        figures_by_name[f"{prefix}f1_adherence"], figures_by_name[f"{prefix}f1_violation"] = (
            class_f1(counts, 0),
            class_f1(counts, 1),
        )
        figures_by_name[f"{prefix}macro_f1"] = macro_f1(counts)
    right = [t for t in targets if t.task == "evidence" and first_pick(t, predictions) in t.right]
    for name in ("verbal", "nonverbal"):
        figures_by_name[name] = estimate_grade(_grades(right, predictions, f"{name}_grade"))
    figures_by_name["norm"] = estimate_grade(_grades([t for t in targets if t.task == "norm"], predictions, "grade"))
    return {column: figures_by_name[column] for column in COLUMNS}


def _grades(targets: Sequence[Target], predictions: Predictions, name: str) -> list[float]:
    """Return the grades of the texts that got one; silence is no grade, and has an outcome of its own."""
    graded = [prediction.grades for target in targets if (prediction := predictions.get(target.key))]
    return [grades[name] for grades in graded if name in grades]


SUITE = Suite(
    name="videonorms",
    tasks=TASKS,
    columns=COLUMNS,
    settings=tuple(map(str, NormSetting)),
    read=lambda path, _: targets(read(path)),
    items=items,
    figures=figures,
    controls={"most frequent": once(most_frequent), "prior": over_draws(prior), "uniform": uniform},
    bare_settings=(NormSetting.GIVEN, NormSetting.WHISPER, NormSetting.TEXT, NormSetting.BLIND),
    forms=FORMS,
    tries=3,
    given={NormSetting.GIVEN: "transcript", NormSetting.TEXT: "transcript"},
    answered_by="judge",
    broken_down_by=("culture", "show", "category"),
    paper_frames=PAPER_FRAMES,
    published=shipped_file("sim_replays.suites", "videonorms_published.yaml"),
)
