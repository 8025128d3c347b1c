"""Make the questions of VideoNorms: to the robot's judge, and to a model alone."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path

from norm_core.prompts.texts import prompt_file
from norm_core.records.episode import Query
from norm_core.records.speech import Speaker, Utterance
from norm_monitor.judge.suite_questions import CULTURES
from sim_replays.runs.items.clip_talk import in_order, shots_of, utterance_of
from sim_replays.runs.run_config import RunConfig, RunItem, RunItems
from sim_replays.suites.videonorms.reader import FILE, TASKS, Annotation, Side, read, targets
from sim_replays.suites.videonorms.replies import SIDES

PAPER_FRAMES = 32


class NormSetting(StrEnum):
    """The input given for a clip of VideoNorms."""

    GIVEN = "transcript-given"
    WHISPER = "whisper"  # the ears' transcript of the clip's sound
    TEXT = "text"  # the dataset's transcript, without images
    BLIND = "blind"


def items(asking: RunConfig) -> RunItems:
    """Make one episode per norm in a clip, with all three questions."""
    data, setting = Path(asking.data), NormSetting(asking.setting)
    annotations = read(data)
    ears = _ears(data, asking) if setting is NormSetting.WHISPER else None
    asked = []
    for annotation in annotations:
        given = annotation.transcript if setting in {NormSetting.GIVEN, NormSetting.TEXT} else ""
        utterances = ears(annotation.clip, CULTURES[annotation.culture]) if ears else _lines(annotation.id, given)
        pictured = setting in {NormSetting.GIVEN, NormSetting.WHISPER}
        asked.append(
            RunItem(
                id=annotation.id,
                queries=tuple(
                    bare_query(annotation, task, utterances) if asking.bare else _norm_query(annotation, task)
                    for task in TASKS
                ),
                shots=shots_of(data, asking, PAPER_FRAMES, annotation.clip, annotation.duration_s) if pictured else (),
                utterances=utterances,
                orders={f"{annotation.id}:{task}": tuple(range(len(Side))) for task in TASKS},
            )
        )
    file = data / FILE if data.is_dir() else data
    return RunItems(asked=tuple(asked), targets=tuple(targets(annotations)), files=(file,))


_TEXTS = prompt_file("prompts", "sim_replays.suites.videonorms").texts


def bare_query(annotation: Annotation, task: str, utterances: Sequence[Utterance]) -> Query:
    """Make a query of the whole prompt, in the clip's own language."""
    culture = annotation.culture.value
    texts = _TEXTS[culture]
    said = [f"{said.speaker_id}: {said.text}" if said.speaker_id else said.text for said in utterances]
    lines = [texts["role"], texts["moment"].format(annotation.start_s)]
    lines += [texts["transcript"], *(f"> {line}" for line in said)] if said else []
    lines.append(texts["category"].format(annotation.category))
    lines += [texts["norm"].format(annotation.norm)] if task != "norm" else []
    lines.append(texts["asked"][task].format(*SIDES[culture]))
    return replace(_norm_query(annotation, task), question="\n".join(lines), style=task)


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
    transcriber = import_module("sim_replays.runs.items.clip_hearing").ClipTranscriber(asking.whisper)
    folder = Path(asking.pictures) if asking.pictures else data if data.is_dir() else data.parent
    return partial(transcriber.heard, folder)
