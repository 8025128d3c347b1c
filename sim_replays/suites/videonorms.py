"""VideoNorms: adherence or violation in clips of 15 s, the evidence and the norm."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
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
from sim_replays.items.clip import Shot
from sim_replays.items.dataset_files import read_annotations
from sim_replays.items.item_bag import list_clip_shots, make_utterance, set_order
from sim_replays.items.run_config import RunConfig, RunItem, RunItems
from sim_replays.items.target import Predictions, Target, find_first_pick
from sim_replays.suites.controls import LABEL_CONTROLS
from sim_replays.suites.suite import ParsedReply, ReplyParser, Suite, read_json_object

FILE = "annotations.jsonl"
TASKS = ("adherence", "evidence", "norm")
PAPER_FRAMES = 32
COLUMNS = (
    "f1_adherence", "f1_violation", "macro_f1",
    "evidence_f1_adherence", "evidence_f1_violation", "evidence_macro_f1", "verbal", "nonverbal", "norm",
)  # fmt: skip

_TEXTS = load_prompt_file("videonorms_prompts", "sim_replays.suites").texts

# The beginnings of the words for each side of `Side`, in English and Chinese.
_SIDE_STEMS = (("adhere", "遵守"), ("violat", "违反"))
# Words before such a beginning that deny it.
_DENIED_SIDE = re.compile(
    r"(?:\b(?:not?|non|never|neither|nor|without)\b|n['’]t\b)\W+(?:\w+\W+){0,2}(?:adhere|violat)|[不未没非]有?(?:遵守|违反)"
)
# The labels of lines in the paper's output format.
_LINE = r"^\W*(?:{})\W*[:：]\s*(.+)$"
_FIELD_LABELS = {
    "label": "label|adherence/violation|遵守/违反",
    "verbal": "verbal(?: evidence)?|语言证据",
    "nonverbal": "non-?verbal(?: evidence)?|非语言证据",
    "norm": "(?:specific )?norm|具体规范",
}


class Side(StrEnum):
    """The options of the first two tasks, in order."""

    ADHERENCE = "adherence"
    VIOLATION = "violation"


class Culture(StrEnum):
    """The country of a clip."""

    US = "us"
    CN = "cn"


class Annotation(Config):
    """One norm in one clip, with the evidence and the wording of every annotator.

    `label` is that of the majority. Where there is no majority it is null, and only the norm is asked.
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
    start_s: float = Field(default=0.0, ge=0, description="start, in the clip, of the moment that the norm is about")

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that ask about it."""
        return TASKS if self.label else ("norm",)


def read(path: Path) -> list[Annotation]:
    """Read the annotations of a folder."""
    return read_annotations(path, FILE, Annotation, lambda annotation: annotation.id)


def make_targets(annotations: Sequence[Annotation]) -> list[Target]:
    """Make a target for each task of each annotation."""
    targets = []
    for annotation in annotations:
        groups = {"culture": annotation.culture.value, "show": annotation.show, "category": annotation.category}
        for task in annotation.tasks:
            is_text = task == "norm"
            targets.append(
                Target(
                    id=annotation.id,
                    task=task,
                    group=annotation.clip,
                    options=0 if is_text else len(Side),
                    right=() if is_text or not annotation.label else (list(Side).index(annotation.label),),
                    words=() if is_text else tuple(Side),
                    kinds=() if is_text else tuple(Side),
                    by=groups,
                    references=(annotation.norm, *annotation.other_norms) if is_text else (),
                    evidence={"verbal": annotation.verbal, "nonverbal": annotation.nonverbal}
                    if task == "evidence"
                    else {},
                )
            )
    return targets


def read_label(query: Query, reply: str) -> ParsedReply | None:
    """Read `Adherence/Violation: Adherence`, or else the one side that the whole reply names."""
    fields, is_strict = _read_fields(reply)
    side_index = _find_side(fields.get("label", ""))
    if side_index is None and "label" not in fields:
        is_strict = False
        side_index = _find_side(strip_reasoning(reply))
    return None if side_index is None else ParsedReply(chosen=(side_index,), is_strict=is_strict)


def read_evidence(query: Query, reply: str) -> ParsedReply | None:
    """Read the lines of a label and of both kinds of evidence."""
    fields, is_strict = _read_fields(reply)
    side_index = _find_side(fields.get("label", ""))
    texts = {name: fields[name].strip() for name in ("verbal", "nonverbal") if fields.get(name, "").strip()}
    if side_index is None or len(texts) < 2:
        return None
    return ParsedReply(chosen=(side_index,), text=json.dumps(texts, ensure_ascii=False), is_strict=is_strict)


def read_norm(query: Query, reply: str) -> ParsedReply | None:
    """Read `Specific Norm: ...`."""
    fields, is_strict = _read_fields(reply)
    text = fields.get("norm", "").strip()
    return ParsedReply(text=json.dumps({"norm": text}, ensure_ascii=False), is_strict=is_strict) if text else None


REPLY_PARSERS: Mapping[str, ReplyParser] = {"adherence": read_label, "evidence": read_evidence, "norm": read_norm}


def _read_fields(reply: str) -> tuple[dict[str, str], bool]:
    """Return the fields of labelled lines, or of a JSON object, and whether they are lines, which is the asked form.

    A field with two different values is left out.
    """
    json_fields = read_json_object(reply)
    if json_fields is not None:
        return {name: value for name, value in json_fields.items() if isinstance(value, str)}, False
    flags = re.MULTILINE | re.IGNORECASE
    values = {
        name: {value.strip(" []") for value in re.findall(_LINE.format(labels), strip_reasoning(reply), flags)}
        for name, labels in _FIELD_LABELS.items()
    }
    return {name: value for name, lines in values.items() if len(lines) == 1 for value in lines}, True


def _find_side(text: str) -> int | None:
    """Return the index of the one side that a text names; None for neither, both, or one that it denies."""
    lower_text = text.casefold()
    if _DENIED_SIDE.search(lower_text):
        return None
    is_named = [any(stem in lower_text for stem in stems) for stems in _SIDE_STEMS]
    return is_named.index(True) if sum(is_named) == 1 else None


class NormSetting(StrEnum):
    """The input given for a clip of VideoNorms."""

    GIVEN = "transcript-given"
    TEXT = "text"  # the dataset's transcript, without images
    BLIND = "blind"


def make_items(run_config: RunConfig) -> RunItems:
    """Make an episode of each norm in a clip, with all its questions."""
    data = Path(run_config.data)
    setting = NormSetting(run_config.setting)
    has_transcript = setting in {NormSetting.GIVEN, NormSetting.TEXT}
    annotations = read(data)
    episodes = []
    for annotation in annotations:
        utterances = _split_transcript(annotation.id, annotation.transcript if has_transcript else "")
        queries = [_make_robot_query(annotation, task) for task in annotation.tasks]
        if run_config.bare:
            queries = [make_bare_query(annotation, task, utterances) for task in annotation.tasks]
        shots: tuple[Shot, ...] = ()
        if setting is NormSetting.GIVEN:
            shots = list_clip_shots(data, run_config, PAPER_FRAMES, annotation.clip, annotation.duration_s)
        episodes.append(
            RunItem(
                id=annotation.id,
                queries=tuple(queries),
                shots=shots,
                utterances=utterances,
                orders={f"{annotation.id}:{task}": tuple(range(len(Side))) for task in annotation.tasks},
            )
        )
    file = data / FILE if data.is_dir() else data
    return RunItems(episodes=tuple(episodes), targets=tuple(make_targets(annotations)), files=(file,))


def make_bare_query(annotation: Annotation, task: str, utterances: Sequence[Utterance]) -> Query:
    """Make a query of the whole prompt of the paper, in the language of the clip."""
    lines = [
        f"{utterance.speaker_id}: {utterance.text}" if utterance.speaker_id else utterance.text
        for utterance in utterances
    ]
    prompt = _TEXTS[annotation.culture.value][task].format(
        ts=f"{annotation.start_s:g}", transcript="\n".join(lines), category=annotation.category, norm=annotation.norm
    )
    return replace(_make_robot_query(annotation, task), question=prompt, style=task)


def _make_robot_query(annotation: Annotation, task: str) -> Query:
    """Make the query of the robot, which states the category, and the norm unless it asks for it."""
    return Query(
        stamp_ns=0,
        query_id=f"{annotation.id}:{task}",
        episode_id=annotation.id,
        task=task,
        question=annotation.category if task == "norm" else f"{annotation.category}: {annotation.norm}",
        style=annotation.culture.value,
        options=() if task == "norm" else tuple(map(str, Side)),
    )


def _split_transcript(annotation_id: str, text: str) -> tuple[Utterance, ...]:
    """Split a transcript into an utterance a line. A line may name its speaker before a colon."""
    utterances = []
    for index, line in enumerate(line for line in text.splitlines() if line.strip()):
        speaker_id, colon, words = line.partition(": ")
        if not colon:
            speaker_id, words = "", line
        utterances.append(make_utterance(f"{annotation_id}-{index}", Speaker.UNKNOWN, words, speaker_id))
    return tuple(set_order(utterances))


def compute_figures(targets: Sequence[Target], predictions: Predictions) -> dict[str, Figure]:
    """Compute F1 with the intervals of Takahashi, and mean grades. Evidence counts only if the label was right."""
    figures: dict[str, Figure] = {}
    for task, prefix in (("adherence", ""), ("evidence", "evidence_")):
        task_targets = [target for target in targets if target.task == task]
        picks = [find_first_pick(target, predictions) for target in task_targets]
        counts = count_confusions([target.right[0] for target in task_targets], picks, len(Side))
        figures[f"{prefix}f1_adherence"] = class_f1(counts, 0)
        figures[f"{prefix}f1_violation"] = class_f1(counts, 1)
        figures[f"{prefix}macro_f1"] = macro_f1(counts)
    with_right_label = [
        target
        for target in targets
        if target.task == "evidence" and find_first_pick(target, predictions) in target.right
    ]
    for name in ("verbal", "nonverbal"):
        figures[name] = estimate_grade(_list_grades(with_right_label, predictions, f"{name}_grade"))
    norm_targets = [target for target in targets if target.task == "norm"]
    figures["norm"] = estimate_grade(_list_grades(norm_targets, predictions, "grade"))
    return {column: figures[column] for column in COLUMNS}


def _list_grades(targets: Sequence[Target], predictions: Predictions, name: str) -> list[float]:
    """Return the grades of the texts that have one. Silence is not a grade, and has an outcome of its own."""
    graded = [prediction.grades for target in targets if (prediction := predictions.get(target.key))]
    return [grades[name] for grades in graded if name in grades]


SUITE = Suite(
    name="videonorms",
    tasks=TASKS,
    columns=COLUMNS,
    settings=tuple(map(str, NormSetting)),
    read_targets=lambda path, _: make_targets(read(path)),
    make_items=make_items,
    compute_figures=compute_figures,
    controls=LABEL_CONTROLS,
    bare_settings=(NormSetting.GIVEN, NormSetting.TEXT, NormSetting.BLIND),
    reply_parsers=REPLY_PARSERS,
    max_tries=3,
    oracle_texts={NormSetting.GIVEN: "transcript", NormSetting.TEXT: "transcript"},
    answered_by="judge",
    paper_frames=PAPER_FRAMES,
    published=shipped_file("sim_replays.suites", "videonorms_published.yaml"),
)
