"""How the monitor reads machine turns that people judged, and its scores against their verdicts.

A figure `name` has its 95 % interval as `name_interval`; both are None where they are undefined.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.talk_verdicts.talk_file import LEAST_MEAN_RATING, Answers, JudgedTurn, Talk, judged_turns
from calibration.timed_talk import TimedTurn, make_talk_records, make_unlabelled_truth
from norm_core.engines.talk_reader import find_latest_reading
from norm_core.models.reader_folder import ReaderSize
from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, ns_to_s, s_to_ns
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import UnitKind
from norm_monitor.assessment.unit_evidence import UnitEvidence
from norm_monitor.assessment.unit_model import shipped_unit_model
from norm_monitor.context.exchange import Exchange
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.spoken_words import estimate_duration_ns
from norm_monitor.context.talk_lines import talk_lines
from norm_monitor.monitor import MonitorConfig
from scoring.agreement_coefficients import icc_one_ways
from scoring.intervals import draw_clusters, percentile_interval
from scoring.ranking import rank_correlations, ranking_measures
from sim_replays.monitor_bench.script_driver import run_monitor

Array = NDArray[np.float64]
# How long the input goes on after the last turn: as long as a reaction is waited for.
_TAIL_NS = 5 * NS_PER_S
# What is read where the reading has to do without the rest: the turn, or what people say next.
PARTS: tuple[Callable[[Exchange], Exchange], ...] = (
    lambda exchange: Exchange(before="", said=exchange.said),
    lambda exchange: Exchange(before="", said="", after=exchange.after),
)
CONTROLS = ("length", "turn_alone", "next_words_alone")


@record
class CorpusReading:
    """The judged turns of a corpus and, for each, the probability of an error, as read in several ways."""

    name: str
    talks: int
    by: str  # words, words and times, or answers
    turns: tuple[JudgedTurn, ...]
    with_reaction: Array
    at_once: Array
    controls: Mapping[str, Array]
    unanswered: int = 0
    reader: ReaderSize | None = None  # the size of the talk reader, if one was loaded


def read_corpora(
    talks: Iterable[Talk],
    matcher: TextMatcher,
    table: ThresholdTable,
    answers: Answers | None = None,
    show: Callable[[Sequence[Talk], str], Iterable[Talk]] = lambda talks, name: talks,
) -> list[CorpusReading]:
    """Read the judged turns of each corpus that has any; `show` shows the progress through its talks.

    Several corpora of one family, such as dbdc3-cic, are also put together.
    """
    by_corpus: dict[str, list[Talk]] = {}
    for talk in talks:
        by_corpus.setdefault(talk.corpus, []).append(talk)
    families: dict[str, list[CorpusReading]] = {}
    for name, every in by_corpus.items():
        part = _read(name, every, matcher, table, answers, show)
        families.setdefault(name.split("-")[0], []).extend([part] if part.turns else [])
    readings: list[CorpusReading] = []
    for family, parts in families.items():
        readings += [_together(family, parts)] if len(parts) > 1 and family not in by_corpus else []
        readings += parts
    return readings


def _read(  # noqa: PLR0917
    name: str,
    talks: Sequence[Talk],
    matcher: TextMatcher,
    table: ThresholdTable,
    answers: Answers | None,
    show: Callable[[Sequence[Talk], str], Iterable[Talk]],
) -> CorpusReading:
    has_times = answers is None and all(turn.start_s is not None for talk in talks for turn in talk.turns)
    turns: list[JudgedTurn] = []
    rows: list[tuple[float, ...]] = []
    unanswered = 0

    def read(exchange: Exchange) -> float:
        return matcher.read(exchange).probability[Polarity.ERROR]

    for talk in show(talks, name):
        own = list(judged_turns(talk))
        held = _held(talk, matcher) if own and answers is None else []
        whole = iter(monitor_reading(talk, matcher, table) if has_times and own else ())
        for judged in own:
            answer = None if answers is None else answers.get((judged.talk_id, judged.number))
            if answers is not None and answer is None:
                unanswered += 1
                continue
            later = next(whole, None)
            if held:
                at_once, held_later = held[judged.number - 1]
                later = held_later if later is None else later
            else:
                at_once = read(replace(judged.exchange, after="", then="")) if answer is None else answer
            if later is None:
                later = read(judged.exchange) if answer is None else answer
            turns.append(judged)
            rows.append(
                (later, at_once, float(len(judged.turn.text)), *(read(part(judged.exchange)) for part in PARTS))
            )
    columns = np.array(rows, float).reshape(-1, 2 + len(CONTROLS)).T
    return CorpusReading(
        name=name,
        talks=len(talks),
        by="answers"
        if answers is not None
        else f"{'words and times' if has_times else 'words'}{', by the talk reader' if matcher.reader_size else ''}",
        reader=matcher.reader_size,
        turns=tuple(turns),
        with_reaction=columns[0],
        at_once=columns[1],
        controls=dict(zip(CONTROLS, columns[2:], strict=True)),
        unanswered=unanswered,
    )


def _held(talk: Talk, matcher: TextMatcher) -> list[tuple[float, float]]:
    """Return for each machine turn how likely people hold it against the machine, at once and with what follows."""
    turns = [turn for turn in talk.turns if turn.text.strip()]
    lines = tuple(talk_lines(("" if turn.is_machine else turn.by, turn.text) for turn in turns))
    readings = matcher.read_talk(lines)
    readings_of_turns = []
    for place, (turn, reading) in enumerate(zip(turns, readings, strict=False)):
        if turn.is_machine:
            readings_of_turns.append((reading.turns[0].held_against, find_latest_reading(readings, place).held_against))
    return readings_of_turns


def _together(family: str, parts: Sequence[CorpusReading]) -> CorpusReading:
    return CorpusReading(
        name=family,
        talks=sum(part.talks for part in parts),
        by=" or ".join(dict.fromkeys(part.by for part in parts)),
        turns=tuple(turn for part in parts for turn in part.turns),
        with_reaction=np.concatenate([part.with_reaction for part in parts]),
        at_once=np.concatenate([part.at_once for part in parts]),
        controls={name: np.concatenate([part.controls[name] for part in parts]) for name in parts[0].controls},
        unanswered=sum(part.unanswered for part in parts),
        reader=next((part.reader for part in parts if part.reader), None),
    )


def lay_out(talk: Talk, gap_s: float) -> Talk:
    """Give the turns of a talk without times a start, a gap after the turn before has been said."""
    if any(turn.start_s is not None for turn in talk.turns):
        return talk
    at_s, turns = 0.0, []
    for turn in talk.turns:
        turns.append(turn.model_copy(update={"start_s": at_s}))
        at_s += ns_to_s(estimate_duration_ns(turn.text)) + gap_s
    return talk.model_copy(update={"turns": tuple(turns)})


def monitor_reading(talk: Talk, matcher: TextMatcher, table: ThresholdTable) -> list[float | None]:
    """Run the monitor on a talk whose turns all have times; return the probability of each judged turn, as it closes.

    A silence that a machine's turn ends counts as that turn's, and turns that follow at once are one. A turn lasts as
    long as its words take to say, and at most until the next one starts.
    """
    spoken = [turn for turn in talk.turns if turn.text.strip()]
    starts = [s_to_ns(turn.start_s or 0.0) for turn in spoken]
    ends = [start + estimate_duration_ns(turn.text) for start, turn in zip(starts, spoken, strict=True)]
    for place, (_, following) in enumerate(pairwise(starts)):
        ends[place] = max(starts[place], min(ends[place], following))
    turns = [
        TimedTurn(speaker_id="" if turn.is_machine else turn.by, text=turn.text, start_ns=start_ns, end_ns=end_ns)
        for turn, start_ns, end_ns in zip(spoken, starts, ends, strict=True)
    ]
    first_ns, until_ns = min(starts, default=0), max(ends, default=0) + _TAIL_NS
    truth = make_unlabelled_truth(talk.id, first_ns, until_ns)
    closed: list[UnitEvidence] = []
    config = MonitorConfig.for_replay((UTTERANCES,))
    records = make_talk_records(turns, first_ns, until_ns)
    run_monitor(records, truth, config, matcher, table, note_closed=closed.append)
    model = config.unit_model(matcher)
    likely: dict[int, float] = {}
    for unit in closed:
        said_ns = unit.unit.offset_ns if unit.unit.kind is UnitKind.SILENCE else unit.unit.onset_ns
        if unit.unit.kind in {UnitKind.ROBOT_TURN, UnitKind.SILENCE} and said_ns is not None:
            likely[said_ns] = max(likely.get(said_ns, 0.0), unit.assessment(model).likely[Polarity.ERROR])
    onsets = sorted(likely)
    places = [bisect_right(onsets, s_to_ns(judged_turn.turn.start_s or 0.0)) for judged_turn in judged_turns(talk)]
    return [likely[onsets[place - 1]] if place else None for place in places]


# Draws of the bootstrap.
_DRAWS = 400
# Draws in one batch; more of them would fill the memory for tens of thousands of turns.
_AT_ONCE = 50
# Fewer annotators tell nothing about each other once one is set apart.
LEAST_ANNOTATORS = 3
# A turn is ordinary where at most this share of its annotators sees a breakdown or rates it below 3.
_MAX_COMPLAINTS = 0.1
_LEAST_FAULT = (5 - LEAST_MEAN_RATING) / 4

Figures = dict[str, Any]  # plain JSON


def score_corpus(reading: CorpusReading, seed: int = 0) -> Figures:
    """Score a corpus that has at least one judged turn.

    `auc` is known with what follows the turn, `auc_at_once` without. By chance the area is 0.5, and the average
    precision `fault_share`.
    """
    verdicts = _Verdicts(reading, seed)
    followed = any(turn.exchange.after for turn in reading.turns)
    controls = [name for name in reading.controls if followed or name != "next_words_alone"]
    return {
        "name": reading.name,
        "talks": reading.talks,
        "turns": len(reading.turns),
        "unanswered": reading.unanswered,
        "read_by": reading.by,
        "fault_share": float(verdicts.is_fault.mean()),
        **verdicts.ranking(reading.with_reaction),
        **verdicts.ranking(reading.at_once, "_at_once"),
        "controls": {name: verdicts.ranking(reading.controls[name]) for name in controls},
        "annotators": verdicts.agreement() if verdicts.counts.min() >= LEAST_ANNOTATORS else None,
        "ordinary": verdicts.ordinary(reading.with_reaction) if "times" in reading.by else None,
    }


class _Verdicts:
    """The verdicts on a corpus's turns, and the bootstrap over its talks."""

    def __init__(self, reading: CorpusReading, seed: int) -> None:
        self._faults = [turn.turn.faults for turn in reading.turns]
        self._is_rating = np.array([turn.turn.rating is not None for turn in reading.turns])
        self._seed, self._reader = seed, reading.reader
        self.counts = np.array([float(len(values)) for values in self._faults])
        self._sums = np.array([sum(values) for values in self._faults])
        self._breakdowns = np.array([float(values.count(1.0)) for values in self._faults])
        self.is_fault = np.array([turn.turn.is_fault for turn in reading.turns])
        groups, self._places = np.unique([turn.group for turn in reading.turns], return_inverse=True)
        self._drawn = draw_clusters(len(groups), _DRAWS, seed)

    def ranking(self, scores: Array, ending: str = "") -> Figures:
        """Rank the turns by scores."""
        names = [f"{name}{ending}" for name in ("auc", "average_precision", "spearman")]
        mean = self._sums / self.counts
        return self._estimates(
            names,
            lambda weights: (
                *ranking_measures(scores, self.is_fault, weights),
                rank_correlations(scores, mean, weights),
            ),
        )

    def agreement(self) -> Figures:
        """Rank by one annotator of each turn, and by half of them, against the others, drawn many times."""
        random, ones = np.random.default_rng(self._seed), np.ones((1, len(self.counts)))
        faults = np.full((len(self.counts), int(self.counts.max())), np.nan)
        for row, values in zip(faults, self._faults, strict=True):
            row[: len(values)] = values
        sizes = {"auc": np.ones_like(self.counts), "auc_of_half": self.counts // 2}
        areas: dict[str, list[Array]] = {name: [] for name in sizes}
        for weights in next(self._draws()):
            keys = np.where(np.isnan(faults), np.inf, random.random(faults.shape))
            drawn = np.take_along_axis(faults, np.argsort(keys, axis=1), axis=1)
            for name, size in sizes.items():
                own = np.where(np.arange(faults.shape[1]) < size[:, None], drawn, 0.0)
                breakdowns = self._breakdowns - (own == 1).sum(axis=1)
                others = self._decide(self._sums - own.sum(axis=1), breakdowns, self.counts - size)
                areas[name].append(ranking_measures(own.sum(axis=1) / size, others, np.vstack([ones, weights]))[0])
        figures = self._estimates(["icc"], lambda weights: (icc_one_ways(self._faults, weights),))
        for name, rows in areas.items():
            whole, resampled = np.array(rows).T
            figures |= {name: _number(whole.mean()), f"{name}_interval": _interval(resampled)}
        return figures

    def ordinary(self, scores: Array) -> Figures:
        """Count the error flags among 100 turns that nearly all annotators find ordinary, and the faults flagged."""
        complaints = [
            sum(value > 0.5 or (value > 0 and not is_rating) for value in values) / len(values)
            for values, is_rating in zip(self._faults, self._is_rating, strict=True)
        ]
        groups = {"": np.array(complaints) <= _MAX_COMPLAINTS, "_of_faults": self.is_fault}
        points = shipped_unit_model(self._reader).operating_points
        figures: Figures = {"turns": int(groups[""].sum())}
        for sensitivity, point in points.items():
            flags = {name: among & (scores >= point.error) for name, among in groups.items()}

            def per_100(weights: Array, flags: dict[str, NDArray[np.bool_]] = flags) -> tuple[Array, ...]:
                with np.errstate(invalid="ignore"):
                    return tuple(100 * (weights @ flags[name]) / (weights @ among) for name, among in groups.items())

            figures[sensitivity] = self._estimates([f"flags_per_100{name}" for name in groups], per_100)
        return figures

    def _decide(self, sums: Array, breakdowns: Array, counts: Array) -> NDArray[np.bool_]:
        return np.where(self._is_rating, sums > _LEAST_FAULT * counts, 2 * breakdowns > counts)

    def _draws(self) -> Iterator[Array]:
        """Yield the weights of the draws, a batch at a time."""
        for first in range(0, _DRAWS, _AT_ONCE):
            drawn = self._drawn[first : first + _AT_ONCE]
            clusters = drawn.shape[1]
            yield np.array([np.bincount(row, minlength=clusters) for row in drawn], float)[:, self._places]

    def _estimates(self, names: Sequence[str], measure: Callable[[Array], tuple[Array, ...]]) -> Figures:
        whole = measure(np.ones((1, len(self.counts))))
        drawn = zip(*(measure(weights) for weights in self._draws()), strict=True)
        figures: Figures = {}
        for name, value, values in zip(names, whole, drawn, strict=True):
            figures[name] = _number(value[0])
            figures[f"{name}_interval"] = None if figures[name] is None else _interval(np.concatenate(values))
        return figures


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _interval(drawn: Array) -> tuple[float, float] | None:
    """Return the interval of draws, without those where nothing is defined."""
    values = drawn[~np.isnan(drawn)]
    return percentile_interval(values) if values.size else None
