"""Make the questions of VideoNorms: to the robot's judge, and to a model alone."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path

from norm_core.records.episode import Query
from norm_core.records.speech import Speaker, Utterance
from norm_monitor.judge.suite_questions import CULTURES
from sim_replays.runs.items.clip_talk import in_order, shots_of, utterance_of
from sim_replays.runs.run_config import RunConfig, RunItem, RunItems, chosen_setting
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
    data, setting = Path(asking.data), chosen_setting(NormSetting, asking.setting)
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


# Sentences of ours for what the paper asks in its table 10: role, start, transcript, category, norm, form.
_ROLE = {
    "us": "You know the social norms of the United States, and judge what happens in this clip as people there would.",
    "cn": "你熟悉中国的社会规范，请像中国人那样判断这段视频中发生的事情。",
}
_MOMENT = {
    "us": "Look at the moment that begins {:g} s into the clip, and not at the clip as a whole.",
    "cn": "请只看视频中从第{:g}秒开始的那一刻，而不是整段视频。",
}
_LABELS = {
    "us": {"transcript": "Transcript:", "category": "Category of the norm: {}", "norm": "The norm: {}"},
    "cn": {"transcript": "对话记录：", "category": "规范的类别：{}", "norm": "规范：{}"},
}
_ASKED = {
    "us": {
        "adherence": (
            "Does the moment adhere to this norm or violate it? Write one JSON object and nothing else:\n"
            '{{"label": "{}" | "{}"}}'
        ),
        "evidence": (
            "Does the moment adhere to this norm or violate it, and what shows it? Write one JSON object and nothing "
            'else:\n{{"label": "{}" | "{}", "verbal": "what is said, and in which tone", "nonverbal": "what is done or '
            'shown, such as gestures and looks"}}'
        ),
        "norm": (
            "Which norm of this category does the moment show? Write one JSON object and nothing else:\n"
            '{{"norm": "the norm in one short sentence"}}'
        ),
    },
    "cn": {
        "adherence": '这一刻是遵守还是违反了该规范？请只写一个JSON对象：\n{{"label": "{}" | "{}"}}',
        "evidence": (
            "这一刻是遵守还是违反了该规范？有什么依据？请只写一个JSON对象：\n"
            '{{"label": "{}" | "{}", "verbal": "说了什么，用什么语气", "nonverbal": "做了什么，例如手势和表情"}}'
        ),
        "norm": '这一刻体现了该类别中的哪条规范？请只写一个JSON对象：\n{{"norm": "用一句短句写出该规范"}}',
    },
}


def bare_query(annotation: Annotation, task: str, utterances: Sequence[Utterance]) -> Query:
    """Make a query of the whole prompt, in the clip's own language."""
    culture = annotation.culture.value
    labels = _LABELS[culture]
    said = [f"{said.speaker_id}: {said.text}" if said.speaker_id else said.text for said in utterances]
    lines = [_ROLE[culture], _MOMENT[culture].format(annotation.start_s)]
    lines += [labels["transcript"], *(f"> {line}" for line in said)] if said else []
    lines.append(labels["category"].format(annotation.category))
    lines += [labels["norm"].format(annotation.norm)] if task != "norm" else []
    lines.append(_ASKED[culture][task].format(*SIDES[culture]))
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
