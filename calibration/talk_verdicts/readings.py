"""How the monitor reads machine turns that people judged, and its scores against their verdicts.

A figure `name` has its 95 % interval as `name_interval`; both are None where they are undefined.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibration.talk_verdicts.rejection_fit import MeasuredTurn, estimate_each, estimate_left_out
from calibration.talk_verdicts.talk_file import LEAST_MEAN_RATING, Answers, JudgedTurn, Talk, judged_turns
from calibration.timed_talk import TimedTurn, make_talk_records, make_unlabelled_truth
from norm_core.engines.talk_reader import find_latest_reading
from norm_core.records.flag import Polarity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, ns_to_s, s_to_ns
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.assessment.rejection import before_reaction, shipped_rejection_model
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import UnitKind
from norm_monitor.assessment.unit_evidence import UnitEvidence
from norm_monitor.assessment.unit_model import shipped_unit_model
from norm_monitor.context.exchange import Exchange
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.spoken_words import estimate_duration_ns
from norm_monitor.context.talk_lines import talk_lines
from norm_monitor.monitor import MonitorConfig
from scoring.intervals import draw_clusters, percentile_interval
from scoring.ranking import ranking_measures
from sim_replays.monitor_bench.script_driver import run_monitor

Array = NDArray[np.float64]
V = TypeVar("V")
# How long the input goes on after the last turn: as long as a reaction is waited for.
_TAIL_NS = 5 * NS_PER_S


@record
class CorpusReading:
    """The judged turns of a corpus and, for each, the probability of an error by the monitor, and its length."""

    name: str
    talks: int
    by: str  # words, words and times, or answers
    turns: tuple[JudgedTurn, ...]
    with_reaction: Array
    at_once: Array
    length: Array
    measured: tuple[MeasuredTurn, ...] = ()  # empty where the whole monitor did not run
    unanswered: int = 0
    has_reader: bool = False  # a talk reader was loaded


def read_corpora(
    talks: Iterable[Talk],
    matcher: TextMatcher,
    table: ThresholdTable,
    answers: Answers | None = None,
    show: Callable[[Sequence[Talk], str], Iterable[Talk]] = lambda talks, name: talks,
) -> list[CorpusReading]:
    """Read the judged turns of each corpus that has any; `show` shows the progress through its talks."""
    by_corpus: dict[str, list[Talk]] = {}
    for talk in talks:
        by_corpus.setdefault(talk.corpus, []).append(talk)
    readings = [_read(name, every, matcher, table, answers, show) for name, every in by_corpus.items()]
    return [reading for reading in readings if reading.turns]


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
    measured: list[MeasuredTurn] = []
    unanswered = 0

    def read(exchange: Exchange) -> float:
        return matcher.read(exchange).probability[Polarity.ERROR]

    for talk in show(talks, name):
        own = list(judged_turns(talk))
        held = _held(talk, matcher) if own and answers is None else []
        own_measured = monitor_reading(talk, matcher, table) if has_times and own else []
        measured += own_measured
        for place, judged in enumerate(own):
            answer = None if answers is None else answers.get((judged.talk_id, judged.number))
            if answers is not None and answer is None:
                unanswered += 1
                continue
            later = own_measured[place].error if own_measured else None
            if held:
                at_once, held_later = held[judged.number - 1]
                later = held_later if later is None else later
            else:
                at_once = read(replace(judged.exchange, after="", then="")) if answer is None else answer
            if later is None:
                later = read(judged.exchange) if answer is None else answer
            turns.append(judged)
            rows.append((later, at_once, float(len(judged.turn.text))))
    columns = np.array(rows, float).reshape(-1, 3).T
    return CorpusReading(
        name=name,
        talks=len(talks),
        by="answers"
        if answers is not None
        else f"{'words and times' if has_times else 'words'}{', by the talk reader' if matcher.has_reader else ''}",
        has_reader=matcher.has_reader,
        turns=tuple(turns),
        with_reaction=columns[0],
        at_once=columns[1],
        length=columns[2],
        measured=tuple(measured),
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


def lay_out(talk: Talk, gap_s: float) -> Talk:
    """Give the turns of a talk without times a start, a gap after the turn before has been said."""
    if any(turn.start_s is not None for turn in talk.turns):
        return talk
    at_s, turns = 0.0, []
    for turn in talk.turns:
        turns.append(turn.model_copy(update={"start_s": at_s}))
        at_s += ns_to_s(estimate_duration_ns(turn.text)) + gap_s
    return talk.model_copy(update={"turns": tuple(turns)})


def monitor_reading(talk: Talk, matcher: TextMatcher, table: ThresholdTable) -> list[MeasuredTurn]:
    """Run the monitor on a talk whose turns all have times; return what it makes of each judged turn.

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
    robot_turns: dict[int, UnitEvidence] = {}
    for unit in closed:
        if unit.unit.kind is UnitKind.ROBOT_TURN:
            robot_turns[unit.unit.onset_ns] = unit
        said_ns = unit.unit.offset_ns if unit.unit.kind is UnitKind.SILENCE else unit.unit.onset_ns
        if unit.unit.kind in {UnitKind.ROBOT_TURN, UnitKind.SILENCE} and said_ns is not None:
            likely[said_ns] = max(likely.get(said_ns, 0.0), unit.assessment(model).likely[Polarity.ERROR])
    readings: list[MeasuredTurn] = []
    for judged in judged_turns(talk):
        start_ns = s_to_ns(judged.turn.start_s or 0.0)
        turn = _find_latest(robot_turns, start_ns)
        early = before_reaction(turn) if turn else None
        readings.append(
            MeasuredTurn(
                judged=judged,
                error=_find_latest(likely, start_ns),
                at_once=early.facts if early else {},
                with_reaction=turn.measured.facts if turn and turn.measured else {},
            )
        )
    return readings


def _find_latest(by_onset: Mapping[int, V], at_ns: int) -> V | None:
    onsets = sorted(by_onset)
    place = bisect_right(onsets, at_ns)
    return by_onset[onsets[place - 1]] if place else None


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


def score_corpus(reading: CorpusReading, *, refits: bool = False) -> Figures:
    """Score a corpus that has at least one judged turn.

    `auc` is known with what follows the turn, `auc_at_once` without. By chance the area is 0.5, and the average
    precision `fault_share`. With `refits`, the weights of rejections are fitted anew without each turn's group.
    """
    verdicts = _Verdicts(reading)
    rejection = None
    if turns := reading.measured:
        shipped = shipped_rejection_model()
        estimates = estimate_left_out(turns) if refits else estimate_each((shipped, turn) for turn in turns)
        with_reaction, at_once = estimates
        among = np.array([bool(turn.at_once) for turn in turns], float)
        rejection = verdicts.ranking(with_reaction) | verdicts.ranking(at_once, "_at_once", among)
    return {
        "name": reading.name,
        "talks": reading.talks,
        "turns": len(reading.turns),
        "unanswered": reading.unanswered,
        "read_by": reading.by,
        "fault_share": float(verdicts.is_fault.mean()),
        **verdicts.ranking(reading.with_reaction),
        **verdicts.ranking(reading.at_once, "_at_once"),
        "length": verdicts.ranking(reading.length),
        "rejection": rejection,
        "annotators": verdicts.agreement() if verdicts.counts.min() >= LEAST_ANNOTATORS else None,
        "ordinary": verdicts.ordinary(reading.with_reaction) if "times" in reading.by else None,
    }


class _Verdicts:
    """The verdicts on a corpus's turns, and the bootstrap over its talks."""

    def __init__(self, reading: CorpusReading) -> None:
        self._faults = [turn.turn.faults for turn in reading.turns]
        self._is_rating = np.array([turn.turn.rating is not None for turn in reading.turns])
        self._has_reader = reading.has_reader
        self.counts = np.array([float(len(values)) for values in self._faults])
        self._sums = np.array([sum(values) for values in self._faults])
        self._breakdowns = np.array([float(values.count(1.0)) for values in self._faults])
        self.is_fault = np.array([turn.turn.is_fault for turn in reading.turns])
        groups, self._places = np.unique([turn.group for turn in reading.turns], return_inverse=True)
        self._drawn = draw_clusters(len(groups), _DRAWS)

    def ranking(self, scores: Array, ending: str = "", among: Array | float = 1.0) -> Figures:
        """Rank the turns by scores, or only those among them that count."""
        names = [f"{name}{ending}" for name in ("auc", "average_precision")]
        return self._estimates(names, lambda weights: ranking_measures(scores, self.is_fault, weights * among))

    def agreement(self) -> Figures:
        """Rank by half of each turn's annotators, against the others, drawn many times."""
        random, ones = np.random.default_rng(0), np.ones((1, len(self.counts)))
        faults = np.full((len(self.counts), int(self.counts.max())), np.nan)
        for row, values in zip(faults, self._faults, strict=True):
            row[: len(values)] = values
        size = self.counts // 2
        areas: list[Array] = []
        for weights in next(self._draws()):
            keys = np.where(np.isnan(faults), np.inf, random.random(faults.shape))
            drawn = np.take_along_axis(faults, np.argsort(keys, axis=1), axis=1)
            own = np.where(np.arange(faults.shape[1]) < size[:, None], drawn, 0.0)
            breakdowns = self._breakdowns - (own == 1).sum(axis=1)
            others = self._decide(self._sums - own.sum(axis=1), breakdowns, self.counts - size)
            areas.append(ranking_measures(own.sum(axis=1) / size, others, np.vstack([ones, weights]))[0])
        whole, resampled = np.array(areas).T
        return {"auc_of_half": _number(whole.mean()), "auc_of_half_interval": _interval(resampled)}

    def ordinary(self, scores: Array) -> Figures:
        """Count the error flags among 100 turns that nearly all annotators find ordinary, and the faults flagged."""
        complaints = [
            sum(value > 0.5 or (value > 0 and not is_rating) for value in values) / len(values)
            for values, is_rating in zip(self._faults, self._is_rating, strict=True)
        ]
        groups = {"": np.array(complaints) <= _MAX_COMPLAINTS, "_of_faults": self.is_fault}
        points = shipped_unit_model(has_reader=self._has_reader).operating_points
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
