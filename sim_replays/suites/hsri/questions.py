"""Make the questions of HSRI: to the robot's judge, and to a model alone."""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from norm_core.engines.option_letters import OPTION_LETTERS as LETTERS
from norm_core.prompts.texts import prompt_file
from norm_core.records.episode import Query
from norm_core.records.speech import Speaker, Timing, Utterance
from norm_core.runtime.time import s_to_ns
from sim_replays.runs.items.clip_talk import in_order, shots_of, utterance_of, with_times
from sim_replays.runs.run_config import RunConfig, RunItem, RunItems
from sim_replays.suites.hsri.reader import (
    CHOICES,
    FILE,
    TOLD,
    HsriQuestion,
    HsriSegment,
    SegmentKind,
    draw_questions,
    read,
    targets,
)

PAPER_FRAMES = 15
_PARTIES = {"agent": Speaker.ROBOT, "user": Speaker.USER}


class SegmentSetting(StrEnum):
    """The input given for a segment of HSRI."""

    GIVEN = "transcript-given"
    TEXT = "text"  # the transcript alone
    BLIND = "blind"


def items(asking: RunConfig) -> RunItems:
    """For each drawn segment, make one episode on the whole talk and one on each party's words alone."""
    data, setting = Path(asking.data), SegmentSetting(asking.setting)
    segments = read(data)
    by_id = {segment.id: segment for segment in segments}
    drawn = [one for one in draw_questions(segments) if not (asking.bare and one.task == "units")]  # no paper's task
    episodes: dict[tuple[str, str], list[HsriQuestion]] = {}
    for question in drawn:
        party = TOLD.get(question.task, "")
        episodes.setdefault((question.id, party), []).append(question)
    asked = []
    for (name, party), questions in sorted(episodes.items()):
        segment = by_id[name.partition("#")[0]]
        blind = setting is SegmentSetting.BLIND
        episode_id = f"{name}/{party}" if party else name
        queries = tuple(_segment_query(episode_id, segment, question) for question in questions)
        orders = [tuple(range(len(question.options))) for question in questions]
        if asking.bare:
            queries, orders = _bare_queries(queries, questions, blind=blind)
        asked.append(
            RunItem(
                id=episode_id,
                item=name,
                queries=queries,
                shots=shots_of(data, asking, PAPER_FRAMES, segment.id, _duration_s(segment))
                if setting is SegmentSetting.GIVEN
                else (),
                utterances=() if blind else _talk(segment, party),
                orders={query.query_id: order for query, order in zip(queries, orders, strict=True)},
            )
        )
    file = data / FILE if data.is_dir() else data
    return RunItems(asked=tuple(asked), targets=tuple(targets(drawn)), files=(file,))


_TEXTS = prompt_file("prompts", "sim_replays.suites.hsri").texts
# The place of each offered option in the order of the labels, where the paper's order differs.
_ORDERS = {"error3": (1, 0, 2)}
_FORMS = {"attributes": "letters", **dict.fromkeys(CHOICES, "number")}


def _bare_queries(
    queries: Sequence[Query], questions: Sequence[HsriQuestion], *, blind: bool
) -> tuple[tuple[Query, ...], list[tuple[int, ...]]]:
    """Make the whole prompt of each query, and the order in which it offers its options."""
    bare, orders = [], []
    for query, question in zip(queries, questions, strict=True):
        options = tuple(_TEXTS["options"].get(question.task, question.options))
        form = _FORMS.get(question.task, "letter")
        talk = "\n".join(f"> {line}" for line in question.told.splitlines())
        given = _TEXTS["given"][TOLD.get(question.task, "both")]
        given = _TEXTS["given"]["blind"] if blind else f"{given}\n{talk}"
        asked = _TEXTS["asked"][question.task].format(query.question, ", ".join(_TEXTS["options"]["attributes"]))
        labels = map(str, range(1, len(options) + 1)) if form == "number" else LETTERS
        offered = [f"({label}) {option}" for label, option in zip(labels, options, strict=False)]
        last = _TEXTS["last"].get(question.task, _TEXTS["last"][form])
        text = "\n".join((given, "", asked, *offered, "", last))
        bare.append(replace(query, question=text, style=form, options=options))
        orders.append(_ORDERS.get(question.task, tuple(range(len(options)))))
    return tuple(bare), orders


def _segment_query(episode_id: str, segment: HsriSegment, question: HsriQuestion) -> Query:
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


def _talk(segment: HsriSegment, party: str) -> tuple[Utterance, ...]:
    """Make the talk of all, or of one party, with times where the annotation has them."""
    lines = [line for line in segment.transcript if not party or line.speaker == party]
    timed = any(line.end_s > 0 for line in segment.transcript)
    begin_s = min(line.start_s for line in segment.transcript)
    utterances = []
    for place, line in enumerate(lines):
        utterance = utterance_of(f"{segment.id}-{place}", _PARTIES[line.speaker], line.text)
        if timed:
            start_ns, end_ns = s_to_ns(line.start_s - begin_s), s_to_ns(max(line.start_s, line.end_s) - begin_s)
            utterance = with_times(utterance, start_ns, end_ns, Timing.SOURCE)
        utterances.append(utterance)
    return tuple(utterances if timed else in_order(utterances))


def _duration_s(segment: HsriSegment) -> float | None:
    lines = segment.transcript
    spoken_s = max(line.end_s for line in lines) - min(line.start_s for line in lines)
    return segment.duration_s or (spoken_s if spoken_s > 0 else None)
