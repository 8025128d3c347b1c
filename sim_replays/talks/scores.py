"""Score readings of machine turns against people's verdicts, with intervals over talks and the annotators' own.

A figure `name` has its 95 % interval as `name_interval`; both are None where they are undefined.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from norm_core.evaluation.agreement_coefficients import icc_one_ways
from norm_core.evaluation.intervals import draw_clusters, percentile_interval
from norm_core.evaluation.ranking import rank_correlations, ranking_measures
from norm_monitor.fusion.unit_model import shipped_unit_model
from sim_replays.talks.readings import Array, CorpusReading
from sim_replays.talks.talk_file import LEAST_MEAN_RATING

_DRAWS, _AT_ONCE = 400, 50  # of the bootstrap, and so many in one go: tens of thousands of turns fill the memory
# Fewer annotators tell nothing about each other once one is set apart, nor about a distribution.
LEAST_ANNOTATORS, LEAST_VOTES = 3, 10
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
    votes = np.array([one.turn.votes.counts for one in reading.turns if one.turn.votes], float).reshape(-1, 3)
    has_votes = len(votes) == len(reading.turns) and votes.sum(axis=1).min() >= LEAST_VOTES
    followed = any(one.exchange.after for one in reading.turns)
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
        "breakdown": verdicts.breakdown(reading.with_reaction, votes) if has_votes else None,
    }


class _Verdicts:
    """The verdicts on a corpus's turns, and the bootstrap over its talks."""

    def __init__(self, reading: CorpusReading, seed: int) -> None:
        self._faults = [one.turn.faults for one in reading.turns]
        self._is_rating = np.array([one.turn.rating is not None for one in reading.turns])
        self._seed, self._has_reader = seed, reading.has_reader
        self.counts = np.array([float(len(values)) for values in self._faults])
        self._sums = np.array([sum(values) for values in self._faults])
        self._breakdowns = np.array([float(values.count(1.0)) for values in self._faults])
        self.is_fault = np.array([one.turn.is_fault for one in reading.turns])
        groups, self._places = np.unique([one.group for one in reading.turns], return_inverse=True)
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

    def breakdown(self, scores: Array, votes: Array) -> Figures:
        """Compute the measures of the Dialogue Breakdown Detection Challenges.

        The probability counts as that of a breakdown, the rest as none. `mean_votes` is a detector that gives every
        turn the corpus's mean votes.
        """
        stated = np.column_stack([1 - scores, np.zeros_like(scores), scores])
        shares = votes / votes.sum(axis=1, keepdims=True)
        mean = np.broadcast_to(shares.mean(axis=0), shares.shape)
        is_breakdown, is_stated = shares.argmax(axis=1) == 2, scores > 0.5
        divergence, error = _js_divergence(stated, shares), ((stated - shares) ** 2).mean(axis=1)

        def measures(weights: Array) -> tuple[Array, ...]:
            total, both = weights.sum(axis=1), weights @ is_breakdown + weights @ is_stated
            f1 = 2 * (weights @ (is_breakdown & is_stated)) / np.maximum(both, 1)
            return f1, weights @ divergence / total, weights @ error / total

        return {
            **self._estimates(["f1", "js_divergence", "mean_squared_error"], measures),
            "mean_votes": {
                "js_divergence": float(_js_divergence(mean, shares).mean()),
                "mean_squared_error": float(((mean - shares) ** 2).mean()),
            },
        }

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
        """Yield rows of weights, of so many draws in one go."""
        for first in range(0, _DRAWS, _AT_ONCE):
            drawn = self._drawn[first : first + _AT_ONCE]
            clusters = drawn.shape[1]
            yield np.array([np.bincount(row, minlength=clusters) for row in drawn], float)[:, self._places]

    def _estimates(self, names: Sequence[str], measure: Callable[[Array], tuple[Array, ...]]) -> Figures:
        """Return each measure over all turns, and its interval over talks."""
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


def _js_divergence(one: Array, other: Array) -> Array:
    """Return the Jensen-Shannon divergence of each row's two distributions, in bits."""
    middle = (one + other) / 2

    def towards_middle(shares: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(shares > 0, shares * np.log2(shares / middle), 0.0).sum(axis=1))

    return np.asarray((towards_middle(one) + towards_middle(other)) / 2)
