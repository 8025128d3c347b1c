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
from sim_replays.items.clip import Shot
from sim_replays.items.item_bag import list_clip_shots, make_utterance, set_order, set_times
from sim_replays.items.run_config import RunConfig, RunItem, RunItems
from sim_replays.items.target import Predictions, Target, find_first_pick, find_picks
from sim_replays.suites.controls import LABEL_CONTROLS
from sim_replays.suites.hsri_segments import (
    CHOICES,
    FILE,
    OPTION_WORDS,
    PARTY_BY_TASK,
    TASKS,
    HsriQuestion,
    HsriSegment,
    SegmentKind,
    draw_questions,
    make_targets,
    read,
)
from sim_replays.suites.suite import Suite

PAPER_FRAMES = 15
COLUMNS = (
    "error3_accuracy", "error3_f1", "error2_accuracy", "error2_f1", "attributes_exact", "attributes_f1",
    "attributes_partial", "multi_accuracy", "multi_f1", "pre", "post", "rationale", "correction",
)  # fmt: skip

_SPEAKERS = {"agent": Speaker.ROBOT, "user": Speaker.USER}
_TEXTS = load_prompt_file("hsri_prompts", "sim_replays.suites").texts
# By task, the label's index of each option that is offered, where the paper has another order.
_PAPER_ORDERS = {"error3": (1, 0, 2)}
# By task, the style of a prompt; `letter` for all others.
_STYLES = {"attributes": "letters", **dict.fromkeys(CHOICES, "number")}
_BOOTSTRAP_DRAWS = 1000


class SegmentSetting(StrEnum):
    """The input given for a segment of HSRI."""

    GIVEN = "transcript-given"
    TEXT = "text"  # the transcript alone
    BLIND = "blind"


def make_items(run_config: RunConfig) -> RunItems:
    """Make for each drawn segment an episode of the whole talk, and one of the words of each party alone."""
    data = Path(run_config.data)
    setting = SegmentSetting(run_config.setting)
    is_blind = setting is SegmentSetting.BLIND
    segments = read(data)
    segment_by_id = {segment.id: segment for segment in segments}
    drawn = draw_questions(segments)
    questions_by_episode: dict[tuple[str, str], list[HsriQuestion]] = {}
    for question in drawn:
        party = PARTY_BY_TASK.get(question.task, "")
        questions_by_episode.setdefault((question.id, party), []).append(question)
    episodes = []
    for (question_id, party), questions in sorted(questions_by_episode.items()):
        segment = segment_by_id[question_id.partition("#")[0]]
        episode_id = f"{question_id}/{party}" if party else question_id
        queries = tuple(_make_robot_query(episode_id, segment, question) for question in questions)
        orders = [tuple(range(len(question.options))) for question in questions]
        if run_config.bare:
            queries, orders = _make_bare_queries(queries, questions, is_blind=is_blind)
        shots: tuple[Shot, ...] = ()
        if setting is SegmentSetting.GIVEN:
            shots = list_clip_shots(data, run_config, PAPER_FRAMES, segment.id, _measure_duration_s(segment))
        episodes.append(
            RunItem(
                id=episode_id,
                item=question_id,
                queries=queries,
                shots=shots,
                utterances=() if is_blind else _make_utterances(segment, party),
                orders={query.query_id: order for query, order in zip(queries, orders, strict=True)},
            )
        )
    file = data / FILE if data.is_dir() else data
    return RunItems(episodes=tuple(episodes), targets=tuple(make_targets(drawn)), files=(file,))


def _make_bare_queries(
    queries: Sequence[Query], questions: Sequence[HsriQuestion], *, is_blind: bool
) -> tuple[tuple[Query, ...], list[tuple[int, ...]]]:
    """Make the queries with the whole prompt, and the order in which each offers its options."""
    bare_queries = []
    orders = []
    for query, question in zip(queries, questions, strict=True):
        options = tuple(_TEXTS["options"].get(question.task, question.options))
        style = _STYLES.get(question.task, "letter")
        text = _TEXTS["asked"][question.task].format(
            talk=_TEXTS["blind"] if is_blind else question.talk,
            kind=query.question.capitalize(),
            options=_TEXTS["between"].get(question.task, ", ").join(_label_options(options, style)),
            attributes=", ".join(_label_options(_TEXTS["options"]["attributes"], "letters")),
        )
        bare_queries.append(replace(query, question=text, style=style, options=options))
        orders.append(_PAPER_ORDERS.get(question.task, tuple(range(len(options)))))
    return tuple(bare_queries), orders


def _label_options(options: Sequence[str], style: str) -> list[str]:
    """Return options with their numbers or letters."""
    labels = [str(number) for number in range(1, len(options) + 1)] if style == "number" else LETTERS
    return [f"({label}) {option}" for label, option in zip(labels, options, strict=False)]


def _make_robot_query(episode_id: str, segment: HsriSegment, question: HsriQuestion) -> Query:
    """Make the query of the robot, which states the kind of the segment where the task is about its attributes."""
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


def _make_utterances(segment: HsriSegment, party: str) -> tuple[Utterance, ...]:
    """Make the utterances of all, or of one party, with times where the annotation has them."""
    lines = [line for line in segment.transcript if not party or line.speaker == party]
    has_times = any(line.end_s > 0 for line in segment.transcript)
    begin_s = min(line.start_s for line in segment.transcript)
    utterances = []
    for index, line in enumerate(lines):
        utterance = make_utterance(f"{segment.id}-{index}", _SPEAKERS[line.speaker], line.text)
        if has_times:
            start_ns = s_to_ns(line.start_s - begin_s)
            end_ns = s_to_ns(max(line.start_s, line.end_s) - begin_s)
            utterance = set_times(utterance, start_ns, end_ns, Timing.SOURCE)
        utterances.append(utterance)
    return tuple(utterances if has_times else set_order(utterances))


def _measure_duration_s(segment: HsriSegment) -> float | None:
    """Return the stated length of a segment, or the length of its talk; None if it has no times."""
    lines = segment.transcript
    spoken_s = max(line.end_s for line in lines) - min(line.start_s for line in lines)
    return segment.duration_s or (spoken_s if spoken_s > 0 else None)


def compute_figures(targets: Sequence[Target], predictions: Predictions) -> dict[str, Figure]:
    """Compute the figures of the paper: the mean of the seeds, with their standard deviation as the interval."""
    seeds = sorted({target.by["seed"] for target in targets})
    figures_by_seed = [
        _score_seed([target for target in targets if target.by["seed"] == seed], predictions) for seed in seeds
    ]
    if len(figures_by_seed) == 1:
        return figures_by_seed[0]
    return {column: _average_seeds([figures[column] for figures in figures_by_seed]) for column in COLUMNS}


def _average_seeds(figures: Sequence[Figure]) -> Figure:
    """Return the mean of the seeds that have cases, with their standard deviation as the interval."""
    with_cases = [figure for figure in figures if figure.count]
    values = [figure.value for figure in with_cases] or [float("nan")]
    spread = stdev(values) if len(values) > 1 else 0.0
    average = mean(values)
    return Figure(
        value=average,
        low=max(0.0, average - spread),
        high=min(100.0, average + spread),
        count=sum(figure.count for figure in with_cases),
    )


def _score_seed(targets: Sequence[Target], predictions: Predictions) -> dict[str, Figure]:
    """Compute the figures of one seed, by column."""
    figures: dict[str, Figure] = {}
    for task in ("error3", "error2", "multi"):
        task_targets = [target for target in targets if target.task == task]
        picks = [find_first_pick(target, predictions) for target in task_targets]
        right = [target.right[0] for target in task_targets]
        figures[f"{task}_accuracy"] = _score_accuracy(task_targets, predictions)
        figures[f"{task}_f1"] = macro_f1(count_confusions(right, picks, len(OPTION_WORDS[task])))
    set_targets = [target for target in targets if target.task == "attributes"]
    groups = [target.group for target in set_targets]
    sets = [find_picks(target, predictions) for target in set_targets]
    pairs = list(zip(sets, set_targets, strict=True))
    exact = [float(picks is not None and set(picks) == set(target.right)) for picks, target in pairs]
    partial = [float(bool(set(picks or ()) & set(target.right))) for picks, target in pairs]
    figures["attributes_exact"] = estimate_share(exact, groups)
    figures["attributes_partial"] = estimate_share(partial, groups)
    figures["attributes_f1"] = _score_sets(set_targets, sets)
    for task in CHOICES:
        figures[task] = _score_accuracy([target for target in targets if target.task == task], predictions)
    return {column: figures[column] for column in COLUMNS}


def _score_accuracy(targets: Sequence[Target], predictions: Predictions) -> Figure:
    hits = [float(find_first_pick(target, predictions) in target.right) for target in targets]
    return estimate_share(hits, [target.group for target in targets])


def _score_sets(targets: Sequence[Target], sets: Sequence[tuple[int, ...] | None]) -> Figure:
    """Compute the mean F1 over attributes, with a bootstrap interval over sessions."""
    if not targets:
        return estimate_share([], [])
    attributes = range(len(Attribute))
    is_right = np.array([[index in target.right for index in attributes] for target in targets])
    is_picked = np.array([[index in (picks or ()) for index in attributes] for picks in sets])
    names, session_indices = np.unique([target.group for target in targets], return_inverse=True)
    # By session and attribute: how often it is picked and right, and how often it is either, counted twice for both.
    counts = np.zeros((2, len(names), len(Attribute)))
    np.add.at(counts[0], session_indices, is_right & is_picked)
    np.add.at(counts[1], session_indices, is_right.astype(int) + is_picked)
    drawn = counts[:, draw_clusters(len(names), _BOOTSTRAP_DRAWS)].sum(axis=2)
    value = float(f1_score(*counts.sum(axis=1)).mean())
    low, high = cluster_interval(f1_score(*drawn).mean(axis=-1), value, len(names))
    return Figure(value=100 * value, low=100 * low, high=100 * high, count=len(targets))


__all__ = ["CHOICES", "FILE", "SUITE", "TASKS", "HsriSegment", "draw_questions", "make_targets", "read"]

SUITE = Suite(
    name="hsri",
    tasks=TASKS,
    columns=COLUMNS,
    settings=tuple(map(str, SegmentSetting)),
    read_targets=lambda path, _: make_targets(draw_questions(read(path))),
    make_items=make_items,
    compute_figures=compute_figures,
    controls=LABEL_CONTROLS,
    bare_settings=(SegmentSetting.GIVEN, SegmentSetting.TEXT, SegmentSetting.BLIND),
    oracle_texts={SegmentSetting.GIVEN: "transcript", SegmentSetting.TEXT: "transcript"},
    emotion_tasks=("attributes", "multi"),
    answered_by="judge",
    interval_label="mean ± sd of seeds",
    paper_frames=PAPER_FRAMES,
    published=shipped_file("sim_replays.suites", "hsri_published.yaml"),
)
