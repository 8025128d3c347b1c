"""HSRI (SHREC): eight tasks on segments of human-robot talk."""

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from statistics import mean, stdev

import numpy as np

from norm_core.engines.options import OPTION_LETTERS as LETTERS
from norm_core.engines.prompt_file import load_prompt_file
from norm_core.files.data_files import shipped_file
from norm_core.records.episode import Query
from norm_core.records.flag import Attribute
from norm_core.records.speech import Speaker, Timing, Utterance
from norm_core.runtime.time import s_to_ns
from scoring.f1 import count_confusions, f1_score, macro_f1
from scoring.figures import Figure, estimate_share
from scoring.intervals import cluster_interval, draw_clusters
from sim_replays.items.item_bag import in_order, shots_of, utterance_of, with_times
from sim_replays.items.run_config import RunConfig, RunItem, RunItems
from sim_replays.items.target import Predictions, Target, first_pick, picks_target
from sim_replays.suites.controls import most_frequent, once, over_draws, prior, uniform
from sim_replays.suites.hsri_segments import (
    CHOICES,
    FILE,
    TASKS,
    TOLD,
    WORDS,
    HsriQuestion,
    HsriSegment,
    SegmentKind,
    draw_questions,
    read,
    targets,
)
from sim_replays.suites.suite import Suite

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
    drawn = draw_questions(segments)
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


_TEXTS = load_prompt_file("hsri_prompts", "sim_replays.suites").texts
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
        text = _TEXTS["asked"][question.task].format(
            talk=_TEXTS["blind"] if blind else question.told,
            kind=query.question.capitalize(),
            options=_TEXTS["between"].get(question.task, ", ").join(_labelled(options, form)),
            attributes=", ".join(_labelled(_TEXTS["options"]["attributes"], "letters")),
        )
        bare.append(replace(query, question=text, style=form, options=options))
        orders.append(_ORDERS.get(question.task, tuple(range(len(options)))))
    return tuple(bare), orders


def _labelled(options: Sequence[str], form: str) -> list[str]:
    labels = [str(number) for number in range(1, len(options) + 1)] if form == "number" else LETTERS
    return [f"({label}) {option}" for label, option in zip(labels, options, strict=False)]


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


_DRAWS = 1000


COLUMNS = (
    "error3_accuracy", "error3_f1", "error2_accuracy", "error2_f1", "attributes_exact", "attributes_f1",
    "attributes_partial", "multi_accuracy", "multi_f1", "pre", "post", "rationale", "correction",
)  # fmt: skip


def figures(targets: Sequence[Target], predictions: Predictions) -> dict[str, Figure]:
    """Compute the paper's metrics. Several seeds give their mean, with the standard deviation as the interval."""
    seeds = sorted({target.by["seed"] for target in targets})
    by_seed = [_of_one_seed([t for t in targets if t.by["seed"] == seed], predictions) for seed in seeds]
    if len(by_seed) == 1:
        return by_seed[0]
    figures_by_name = {}
    for column in COLUMNS:
        cards = [card[column] for card in by_seed if card[column].count]
        values = [card.value for card in cards] or [float("nan")]
        spread = stdev(values) if len(values) > 1 else 0.0
        middle = mean(values)
        count = sum(card.count for card in cards)
        low, high = max(0.0, middle - spread), min(100.0, middle + spread)
        figures_by_name[column] = Figure(value=middle, low=low, high=high, count=count)
    return figures_by_name


def _of_one_seed(targets: Sequence[Target], predictions: Predictions) -> dict[str, Figure]:
    figures_by_name: dict[str, Figure] = {}
    for task in ("error3", "error2", "multi"):
        asked = [target for target in targets if target.task == task]
        picks = [first_pick(target, predictions) for target in asked]
        figures_by_name[f"{task}_accuracy"] = _accuracy(asked, predictions)
        figures_by_name[f"{task}_f1"] = macro_f1(count_confusions([t.right[0] for t in asked], picks, len(WORDS[task])))
    asked = [target for target in targets if target.task == "attributes"]
    groups = [target.group for target in asked]
    sets = [picks_target(target, predictions) for target in asked]
    exact = [float(picked is not None and set(picked) == set(t.right)) for picked, t in zip(sets, asked, strict=True)]
    partial = [float(bool(set(picked or ()) & set(t.right))) for picked, t in zip(sets, asked, strict=True)]
    figures_by_name["attributes_exact"], figures_by_name["attributes_partial"] = (
        estimate_share(exact, groups),
        estimate_share(partial, groups),
    )
    figures_by_name["attributes_f1"] = _macro_f1_of_sets(asked, sets)
    for task in CHOICES:
        figures_by_name[task] = _accuracy([target for target in targets if target.task == task], predictions)
    return {column: figures_by_name[column] for column in COLUMNS}


def _accuracy(asked: Sequence[Target], predictions: Predictions) -> Figure:
    hits = [float(first_pick(target, predictions) in target.right) for target in asked]
    return estimate_share(hits, [target.group for target in asked])


def _macro_f1_of_sets(asked: Sequence[Target], sets: Sequence[tuple[int, ...] | None]) -> Figure:
    """Compute the mean F1 over attributes, with a bootstrap interval over sessions."""
    if not asked:
        return estimate_share([], [])
    wanted = np.array([[place in target.right for place in range(len(Attribute))] for target in asked])
    is_picked = np.array([[place in (places or ()) for place in range(len(Attribute))] for places in sets])
    names, at = np.unique([target.group for target in asked], return_inverse=True)
    of_session = np.zeros((2, len(names), len(Attribute)))
    np.add.at(of_session[0], at, wanted & is_picked)
    np.add.at(of_session[1], at, wanted.astype(int) + is_picked)
    drawn = of_session[:, draw_clusters(len(names), _DRAWS)].sum(axis=2)
    value = float(f1_score(*of_session.sum(axis=1)).mean())
    low, high = cluster_interval(f1_score(*drawn).mean(axis=-1), value, len(names))
    return Figure(value=100 * value, low=100 * low, high=100 * high, count=len(asked))


__all__ = ["CHOICES", "FILE", "SUITE", "TASKS", "HsriSegment", "draw_questions", "read", "targets"]

SUITE = Suite(
    name="hsri",
    tasks=TASKS,
    columns=COLUMNS,
    settings=tuple(map(str, SegmentSetting)),
    read=lambda path, _: targets(draw_questions(read(path))),
    items=items,
    figures=figures,
    controls={"most frequent": once(most_frequent), "prior": over_draws(prior), "uniform": uniform},
    bare_settings=(SegmentSetting.GIVEN, SegmentSetting.TEXT, SegmentSetting.BLIND),
    given={SegmentSetting.GIVEN: "transcript", SegmentSetting.TEXT: "transcript"},
    about_emotions=("attributes", "multi"),
    answered_by="judge",
    ranges="mean ± sd of seeds",
    paper_frames=PAPER_FRAMES,
    published=shipped_file("sim_replays.suites", "hsri_published.yaml"),
)
