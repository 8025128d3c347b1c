"""Questions about clips, for the judge: VideoNorms' norms in a scene and HSRI's segments of robot talk."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path

from norm_core.records.episode import Query
from norm_core.records.speech import Speaker, Timing, Utterance
from norm_core.runtime.time import s_to_ns
from norm_monitor.judge.suite_questions import CULTURES
from sim_replays.runs.items.clip import Shot, shots
from sim_replays.runs.run_config import RunConfig, RunItem, RunItems, chosen_setting
from sim_replays.suites import hsri, videonorms
from sim_replays.suites.hsri import HSRI, HsriSegment, SegmentKind
from sim_replays.suites.videonorms import VIDEONORMS, Annotation, Side

PAPER_SHOTS = {"videonorms": 32, "hsri": 15}
_PARTIES = {"agent": Speaker.ROBOT, "user": Speaker.USER}


class NormSetting(StrEnum):
    """The input given for a clip of VideoNorms."""

    GIVEN = "transcript-given"
    WHISPER = "whisper"  # the ears' transcript of the clip's sound
    TEXT = "text"  # the dataset's transcript, without images
    BLIND = "blind"


class SegmentSetting(StrEnum):
    """The input given for a segment of HSRI."""

    GIVEN = "transcript-given"
    TEXT = "text"  # the transcript alone
    BLIND = "blind"


def videonorms_items(asking: RunConfig) -> RunItems:
    """Make one episode per norm in a clip, with all three questions."""
    data, setting = Path(asking.data), chosen_setting(NormSetting, asking.setting)
    annotations = videonorms.read(data)
    ears = _ears(data, asking) if setting is NormSetting.WHISPER else None
    asked = []
    for annotation in annotations:
        given = annotation.transcript if setting in {NormSetting.GIVEN, NormSetting.TEXT} else ""
        utterances = ears(annotation.clip, CULTURES[annotation.culture]) if ears else _lines(annotation.id, given)
        pictured = setting in {NormSetting.GIVEN, NormSetting.WHISPER}
        asked.append(
            RunItem(
                id=annotation.id,
                queries=tuple(_norm_query(annotation, task) for task in videonorms.TASKS),
                shots=_shots(data, asking, annotation.clip, annotation.duration_s) if pictured else (),
                utterances=utterances,
                orders={f"{annotation.id}:{task}": tuple(range(len(Side))) for task in videonorms.TASKS},
            )
        )
    file = data / videonorms.FILE if data.is_dir() else data
    return RunItems(suite=VIDEONORMS, asked=tuple(asked), targets=tuple(videonorms.targets(annotations)), files=(file,))


def hsri_items(asking: RunConfig) -> RunItems:
    """For each drawn segment, make one episode on the whole talk and one on each party's words alone."""
    data, setting = Path(asking.data), chosen_setting(SegmentSetting, asking.setting)
    segments = hsri.read(data)
    by_id = {segment.id: segment for segment in segments}
    drawn = hsri.draw_questions(segments)
    episodes: dict[tuple[str, str], list[hsri.HsriQuestion]] = {}
    for question in drawn:
        party = hsri.TOLD.get(question.task, "")
        episodes.setdefault((question.id, party), []).append(question)
    asked = []
    for (name, party), questions in sorted(episodes.items()):
        segment = by_id[name.partition("#")[0]]
        blind = setting is SegmentSetting.BLIND
        episode_id = f"{name}/{party}" if party else name
        queries = tuple(_segment_query(episode_id, segment, question) for question in questions)
        asked.append(
            RunItem(
                id=episode_id,
                item=name,
                queries=queries,
                shots=_shots(data, asking, segment.id, _duration_s(segment)) if setting is SegmentSetting.GIVEN else (),
                utterances=() if blind else _talk(segment, party),
                orders={
                    query.query_id: tuple(range(len(question.options)))
                    for query, question in zip(queries, questions, strict=True)
                },
            )
        )
    file = data / hsri.FILE if data.is_dir() else data
    return RunItems(suite=HSRI, asked=tuple(asked), targets=tuple(hsri.targets(drawn)), files=(file,))


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


def _segment_query(episode_id: str, segment: HsriSegment, question: hsri.HsriQuestion) -> Query:
    kind = segment.kind.value if question.task in {"attributes", "multi"} else ""
    assert kind != SegmentKind.NONE
    return Query(
        stamp_ns=0,
        query_id=f"{question.id}:{question.task}",
        episode_id=episode_id,
        task=question.task,
        question=kind,
        options=tuple(map(str, question.options)),
        several=question.task == "attributes",
    )


def _lines(name: str, text: str) -> tuple[Utterance, ...]:
    """Split a transcript into one utterance per line, in order. A line may name its speaker before a colon."""
    utterances = []
    for place, line in enumerate(line for line in text.splitlines() if line.strip()):
        who, colon, words = line.partition(": ")
        utterances.append(
            _utterance(f"{name}-{place}", Speaker.UNKNOWN, words if colon else line, who if colon else "")
        )
    return tuple(_in_order(utterances))


def _talk(segment: HsriSegment, party: str) -> tuple[Utterance, ...]:
    """Make the talk of all, or of one party, with times where the annotation has them."""
    lines = [line for line in segment.transcript if not party or line.speaker == party]
    timed = any(line.end_s > 0 for line in segment.transcript)
    begin_s = min(line.start_s for line in segment.transcript)
    utterances = []
    for place, line in enumerate(lines):
        utterance = _utterance(f"{segment.id}-{place}", _PARTIES[line.speaker], line.text)
        if timed:
            start_ns, end_ns = s_to_ns(line.start_s - begin_s), s_to_ns(max(line.start_s, line.end_s) - begin_s)
            utterance = _timed(utterance, start_ns, end_ns, Timing.SOURCE)
        utterances.append(utterance)
    return tuple(utterances if timed else _in_order(utterances))


def _utterance(name: str, speaker: Speaker, text: str, speaker_id: str = "") -> Utterance:
    return Utterance(
        stamp_ns=0,
        utterance_id=name,
        speaker=speaker,
        speaker_id=speaker_id.strip(),
        text=text.strip(),
        start_ns=0,
        end_ns=0,
        source_topic="transcript",
    )


def _timed(utterance: Utterance, start_ns: int, end_ns: int, timing: Timing) -> Utterance:
    return replace(utterance, stamp_ns=start_ns, start_ns=start_ns, end_ns=end_ns, timing=timing)


def _in_order(utterances: Sequence[Utterance]) -> list[Utterance]:
    """Order utterances without times, a nanosecond apart."""
    return [_timed(utterance, place, place, Timing.ABSENT) for place, utterance in enumerate(utterances)]


def _duration_s(segment: HsriSegment) -> float | None:
    lines = segment.transcript
    spoken_s = max(line.end_s for line in lines) - min(line.start_s for line in lines)
    return segment.duration_s or (spoken_s if spoken_s > 0 else None)


def _shots(data: Path, asking: RunConfig, name: str, duration_s: float | None) -> tuple[Shot, ...]:
    folder = Path(asking.pictures) if asking.pictures else data if data.is_dir() else data.parent
    most = PAPER_SHOTS[asking.suite] if asking.sampling == "paper" else 0
    return shots(folder, name, duration_s=duration_s, most=most)


def _ears(data: Path, asking: RunConfig) -> Callable[[str, str], tuple[Utterance, ...]]:
    # A late import: Whisper takes seconds to load.
    transcriber = import_module("sim_replays.runs.items.clip_hearing").ClipTranscriber(asking.whisper)
    folder = Path(asking.pictures) if asking.pictures else data if data.is_dir() else data.parent
    return partial(transcriber.heard, folder)
