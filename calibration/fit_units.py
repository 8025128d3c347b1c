"""Fit the weights of units' facts: what each fact adds to the odds of an error and of a competence."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date

import numpy as np
from numpy.typing import NDArray

from calibration.additive_fit import AdditiveFit, Table, find_least_scores, fit_additive
from calibration.encounter_reader import EncounterReader, LabelledTurns
from calibration.unit_examples import FITTED, LabelledUnit
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record
from norm_monitor.assessment.unit import UnitKind
from norm_monitor.assessment.unit_facts import MEASURES
from norm_monitor.assessment.unit_model import (
    FORMAT,
    KIND,
    MADE_WITH,
    OWED_S,
    KindModel,
    OperatingPoint,
    Sensitivity,
    UnitModel,
    rank_attributes,
)
from norm_monitor.context.exchange import ExchangeClassifier, ExchangeStage

POLARITIES = tuple(Polarity)
# The false errors an hour of harmless talk that each sensitivity accepts, how much recall of competences counts, and
# how many of the competences shown a coder marks at the least.
BUDGETS = {
    Sensitivity.QUIET: (2.0, 0.5, 0.7),
    Sensitivity.BALANCED: (10.0, 1.0, 0.7),
    Sensitivity.KEEN: (20.0, 1.4, 0.0),
}
# What sense says of a fact: an error, or a competence, is no less likely the more there is of it.
RISING = {
    UnitKind.ROBOT_TURN: (
        (
            *("text_error_log_odds", "text_error_log_odds_without_reaction", "encounter_model_error"),
            *("reader_error", "reader_error_at_once", "reader_held", "reader_held_at_once"),
        ),
        (
            *("text_competence_log_odds", "text_competence_log_odds_without_reaction", "encounter_model_competence"),
            *("reader_competence", "reader_competence_at_once", "reader_good", "reader_good_at_once"),
        ),
    ),
    UnitKind.SILENCE: (
        ("silence_s", "gap_after_s", "robot_silent_after_s", "owed_silence_s", "pause_at_work_s"),
        (),
    ),
    UnitKind.PERSON_TURN: ((), ()),
}  # fmt: skip
# The facts that decide alone, and from where. The reader is right there in 72 to 89 of 100 units of writers that it was
# not taught; below, it is wrong about real robots at work (SCOUT: 2 of 159 such units are errors, 2026-11-29). Of
# 27 such silences after a question or request coders mark 20.
_DECIDE_ALONE: dict[UnitKind, tuple[Mapping[str, Sequence[float]], ...]] = {
    UnitKind.ROBOT_TURN: ({"reader_error": (3.0,)}, {"reader_competence": (2.5, 4.0)}),
    UnitKind.SILENCE: ({"owed_silence_s": (OWED_S,)}, {}),
}
# Silences gain from more steps: few facts, and few units (chosen on silences of other writers, 2026-11-23).
_ROUNDS = {UnitKind.ROBOT_TURN: 300, UnitKind.SILENCE: 700, UnitKind.PERSON_TURN: 300}
# Minimum number of units with an attribute for a fit of it; below, its share among the units is taken.
_FEWEST_OF_ATTRIBUTE, _ATTRIBUTE_ROUNDS = 25, 120
_INNER_FOLDS = 4
_OF_WORDS = ("text_", "encounter_model_", "known_after", "reader_")
# How many units of invented talk one unit of a slow real robot weighs, because these are rarer.
_REAL_WEIGHT = 4.0
# The thresholds of errors and of competences in talk with a slow robot (chosen on coded people left out, 2026-11-29).
SLOW_THRESHOLDS = {Sensitivity.QUIET: (0.5, 0.5), Sensitivity.BALANCED: (0.3, 0.3), Sensitivity.KEEN: (0.2, 0.2)}
# What is weighed as it ends, how much surer an error must be then (chosen on writers left out, 2026-11-30), and which
# share of competences flagged then is to stay.
_EARLY = (UnitKind.ROBOT_TURN,)
EARLY_SURER, _SUREST = 0.1, 0.95
_STAYING = 0.85
Rows = NDArray[np.int64]
Fitted = dict[UnitKind, tuple[Table, AdditiveFit]]
_GRID = np.round(np.arange(0.05, 0.991, 0.01), 2)
# How many more attributes than a coder a flag names: one shared attribute suffices, so a further one costs little.
_MORE_NAMED, _LEAST_ADDED = 0.25, 0.001


@record
class FittedTalk:
    """An encounter as material: its writer, whether it has no labelled error, and its length."""

    writer: str
    harmless: bool
    hours: float
    is_new: bool = False  # to the reader of encounters that ships, whose readings then stay


class TrainingSet:
    """The labelled units of all talks, and the reader that is fitted on any part of them."""

    def __init__(self, units: Sequence[LabelledUnit], talks: Sequence[FittedTalk], encoder: SentenceEncoder) -> None:
        """Compare all turns of the robot's with each other; takes seconds for thousands of them."""
        self.units, self.talks = tuple(units), tuple(talks)
        self.writers = np.array([talks[unit.talk].writer for unit in units])
        taught = [
            (row, unit, unit.exchange)
            for row, unit in enumerate(units)
            if unit.exchange is not None and not talks[unit.talk].is_new
        ]
        self._place_of = {row: place for place, (row, _, _) in enumerate(taught)}
        turns = [(exchange, unit.polarity, unit.attributes) for _, unit, exchange in taught]
        features = ExchangeClassifier(encoder).features
        self.reader = EncounterReader(LabelledTurns.of(turns), features)

    def seen(self, within: Rows, out: Rows) -> dict[int, LabelledUnit]:
        """Return units with the facts of a reader that was fitted on other units."""
        learnt = np.array([self._place_of[int(row)] for row in within if int(row) in self._place_of])
        rows = [int(row) for row in out if int(row) in self._place_of]
        units_by_row = {int(row): self.units[int(row)] for row in out}
        if rows:
            places = np.array([self._place_of[row] for row in rows])
            late, early = self.reader.predict(learnt, places), self.reader.predict(learnt, places, ExchangeStage.SAID)
            for row, *scores in zip(rows, late, early, strict=True):
                unit = self.units[row]
                facts, early_facts = (
                    {**own, **dict(zip(_ENCOUNTER_FACTS, map(float, score), strict=True))} if own else own
                    for own, score in zip((unit.facts, unit.early_facts), scores, strict=True)
                )
                units_by_row[row] = replace(unit, facts=facts, early_facts=early_facts)
        return units_by_row

    def weights(self, within: Rows) -> dict[str, NDArray[np.float32]]:
        """Return the weights of a reader that is fitted on these units."""
        return self.reader.weights(np.array([self._place_of[int(row)] for row in within if int(row) in self._place_of]))


# The facts that a reader of encounters gives, in the order of its outputs.
_ENCOUNTER_FACTS = (
    *(f"encounter_model_{polarity}" for polarity in Polarity),
    *(f"encounter_model_{polarity}_{attribute}" for polarity in Polarity for attribute in Attribute),
)


def fit_unit_model(material: TrainingSet, within: Rows, fitted_on: Mapping[str, str]) -> UnitModel:
    """Fit all weights on these units, and choose the operating points on folds of their writers."""
    writers = sorted(set(material.writers[within]))
    fold_of = {writer: at % _INNER_FOLDS for at, writer in enumerate(writers)}
    folds = np.array([fold_of[writer] for writer in material.writers[within]])
    seen: dict[int, LabelledUnit] = {}
    for fold in set(folds):
        seen |= material.seen(within[folds != fold], within[folds == fold])
    units = [seen[int(row)] for row in within]
    talks = [talk if talk.writer in fold_of else replace(talk, harmless=False) for talk in material.talks]
    early = [replace(unit, facts=unit.early_facts) for unit in units]
    likely, likely_early = np.zeros((2, len(units), len(POLARITIES)))
    for fold in range(_INNER_FOLDS):
        out = np.flatnonzero(folds == fold)
        if not out.size:
            continue
        for some, kinds, likelihoods in ((units, FITTED, likely), (early, _EARLY, likely_early)):
            within_fold = [unit for unit, at in zip(some, folds, strict=True) if at != fold and unit.facts]
            fitted = fit_polarities(within_fold, kinds)
            likelihoods[out] = probabilities(fitted, [some[int(row)] for row in out])
    return UnitModel(
        kind=KIND,
        format=FORMAT,
        made_on=date.today().isoformat(),
        made_with=MADE_WITH,
        fitted_on=dict(fitted_on),
        kinds={kind: _fit_kind(kind, [unit for unit in units if unit.kind is kind]) for kind in FITTED},
        early_kinds={
            kind: _fit_kind(kind, [unit for unit in early if unit.kind is kind and unit.facts]) for kind in _EARLY
        },
        operating_points={
            sensitivity: point.model_copy(update={"early": _early_bars(likely_early, likely, point)})
            for sensitivity, point in operating_points(units, likely, likely_early, talks).items()
        },
        sightings=sighting_precision(units),
    )


def fit_slow_kinds(invented: Sequence[LabelledUnit], real: Sequence[LabelledUnit]) -> dict[UnitKind, KindModel]:
    """Fit the weights for talk with a slow robot: by timing and form alone, as no reading of words helped there."""
    units = [conduct_of(unit) for unit in (*invented, *real)]
    weights = np.repeat([1.0, _REAL_WEIGHT], [len(invented), len(real)])
    return {
        kind: _fit_kind(kind, [units[int(row)] for row in rows], weights[rows])
        for kind in FITTED
        if (rows := np.flatnonzero([unit.kind is kind for unit in units])).size
    }


def with_slow_kinds(model: UnitModel, slow_kinds: Mapping[UnitKind, KindModel]) -> UnitModel:
    """Return a model with these weights for talk with a slow robot, and their thresholds."""
    points = {
        sensitivity: point.model_copy(update={"slow": dict(zip(POLARITIES, SLOW_THRESHOLDS[sensitivity], strict=True))})
        for sensitivity, point in model.operating_points.items()
    }
    return model.model_copy(update={"slow_kinds": dict(slow_kinds), "operating_points": points})


def conduct_of(unit: LabelledUnit) -> LabelledUnit:
    """Return a unit without what readers make of its words."""
    return replace(unit, facts={name: fact for name, fact in unit.facts.items() if not name.startswith(_OF_WORDS)})


def sighting_precision(units: Sequence[LabelledUnit]) -> dict[str, float]:
    """Return the share of what each cue sees that coders mark with its polarity and one of its attributes."""
    count: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for unit in units:
        outcomes = {
            (finding.reason.cue_id, right) for finding, right in zip(unit.findings, unit.borne_out, strict=True)
        }
        for cue_id, is_borne_out in sorted(outcomes):
            count[cue_id] += 1
            right[cue_id] += is_borne_out
    # A little doubt, so that three of three are not certainty.
    return {cue_id: round((right[cue_id] + 1) / (count[cue_id] + 3), 3) for cue_id in sorted(count)}


def probabilities(fitted: Fitted, units: Sequence[LabelledUnit]) -> NDArray[np.float64]:
    """Return the probability of each unit and polarity."""
    likely = np.zeros((len(units), len(POLARITIES)))
    for kind, (table, fit) in fitted.items():
        rows = np.flatnonzero([unit.kind is kind for unit in units])
        if rows.size:
            odds = np.exp(fit.scores(table.like([units[int(row)].facts for row in rows])))
            likely[rows] = odds / (1 + odds.sum(axis=1, keepdims=True))
    return likely


def fit_polarities(units: Sequence[LabelledUnit], kinds: Sequence[UnitKind] = FITTED) -> Fitted:
    """Fit the scores of both polarities for each kind of unit."""
    fitted: Fitted = {}
    for kind in kinds:
        chosen = [unit for unit in units if unit.kind is kind]
        table = _table(chosen)
        fitted[kind] = table, _fit_polarities(kind, chosen, table)
    return fitted


def _fit_polarities(
    kind: UnitKind, units: Sequence[LabelledUnit], table: Table, slow_weights: NDArray[np.float64] | None = None
) -> AdditiveFit:
    """Fit the scores of both polarities; in talk with a slow robot, units have weights, and no fact decides alone."""
    weights = np.ones(len(units)) if slow_weights is None else slow_weights
    marked = np.array([[unit.polarity is polarity for polarity in POLARITIES] for unit in units], bool).reshape(-1, 2)
    fit = fit_additive(table, marked, weights, RISING[kind], _ROUNDS[kind])
    deciding = _DECIDE_ALONE.get(kind, ()) if slow_weights is None else ()
    fit.least = tuple(find_least_scores(table, marked[:, at], thresholds) for at, thresholds in enumerate(deciding))
    return fit


def _fit_kind(
    kind: UnitKind, units: Sequence[LabelledUnit], slow_weights: NDArray[np.float64] | None = None
) -> KindModel:
    table = _table(units)
    fit = _fit_polarities(kind, units, table, slow_weights)
    attributes, coded, named_from = {}, {}, {}
    for polarity in POLARITIES:
        rows = np.flatnonzero([unit.polarity is polarity for unit in units])
        sets = [tuple(attribute for attribute in Attribute if attribute in units[int(row)].attributes) for row in rows]
        named = np.array([[attribute in marked for attribute in Attribute] for marked in sets], bool).reshape(
            -1, len(Attribute)
        )
        part = table.rows(rows)
        rounds = _ATTRIBUTE_ROUNDS if len(rows) > 2 * _FEWEST_OF_ATTRIBUTE else 0
        fits = {
            attribute: fit_additive(
                part,
                named[:, [at]],
                np.ones(len(rows)),
                rounds=rounds if named[:, at].sum() >= _FEWEST_OF_ATTRIBUTE else 0,
            )
            for at, attribute in enumerate(Attribute)
        }
        attributes[polarity] = {attribute: fits[attribute].score(0, part) for attribute in Attribute}
        coded[polarity] = tuple(sorted(Counter(filter(None, sets)).items()))
        scores = np.column_stack(
            [fits[attribute].scores(part)[:, 0] - fits[attribute].intercepts[0] for attribute in Attribute]
        )
        ranked = [rank_attributes(coded[polarity], dict(zip(Attribute, row, strict=True))) for row in scores]
        named_from[polarity] = _named_from(np.array([[adds for _, adds in row] for row in ranked]), named)
    return KindModel(
        polarities={polarity: fit.score(at, table) for at, polarity in enumerate(POLARITIES)},
        attributes=attributes,
        coded=coded,
        named_from=named_from,
    )


def _named_from(adds: NDArray[np.float64], named: NDArray[np.bool_]) -> float:
    """Return what a further attribute must add to be named, so that a few more are named than coders do."""
    if not len(named):
        return 1.0
    share = (named.sum(axis=1).mean() - 1 + _MORE_NAMED) / 2  # of the second and third in rank
    return max(_LEAST_ADDED, round(float(np.quantile(adds[:, 1:], np.clip(1 - share, 0, 1))), 4))


def operating_points(
    units: Sequence[LabelledUnit],
    likely: NDArray[np.float64],
    likely_early: NDArray[np.float64],
    talks: Sequence[FittedTalk],
) -> dict[Sensitivity, OperatingPoint]:
    """Choose the least bars within each budget, from probabilities of units that a fit has not seen.

    A flag stands, so an error counts whether it is flagged as the turn ends or once its reaction is known.
    """
    harmless = np.array([talks[unit.talk].harmless for unit in units])
    hours = sum(talk.hours for talk in talks if talk.harmless)
    flagged, sure = likely.argmax(axis=1), np.where(likely_early.argmax(axis=1) == 0, likely_early[:, 0], 0.0)
    opened = [((flagged == 0) & (likely[:, 0] >= bar)) | (sure >= _surer(bar)) for bar in _GRID]
    errors = np.array([(harmless & row).sum() / max(hours, 1e-9) for row in opened])
    right = np.array([unit.polarity is Polarity.COMPETENCE for unit in units])
    points = {}
    for sensitivity, (budget, recall_counts, least_precision) in BUDGETS.items():
        place = int(np.argmax(errors <= budget)) if (errors <= budget).any() else len(_GRID) - 1
        shown = [(flagged == 1) & (likely[:, 1] >= bar) for bar in _GRID]
        scores = [_f_beta(right, row, recall_counts) for row in shown]
        if any(precise := [row.any() and right[row].mean() >= least_precision for row in shown]):
            scores = [score if enough else 0.0 for score, enough in zip(scores, precise, strict=True)]
        points[sensitivity] = OperatingPoint(
            error=float(_GRID[place]),
            competence=float(_GRID[int(np.argmax(scores))]),
            false_errors_per_hour=round(float(errors[place]), 1),
        )
    return points


def _early_bars(early: NDArray[np.float64], final: NDArray[np.float64], point: OperatingPoint) -> dict[Polarity, float]:
    """Return the thresholds as a turn ends: an error is surer, and enough competences stay once reactions are known."""
    stays = (final.argmax(axis=1) == 1) & (final[:, 1] >= point.competence)
    rows = [(early.argmax(axis=1) == 1) & (early[:, 1] >= bar) for bar in _GRID]
    enough = [not row.any() or stays[row].mean() >= _STAYING for row in rows]
    # At this threshold and at every higher one, enough of them stay.
    lasting = np.logical_and.accumulate(enough[::-1])[::-1]
    return {
        Polarity.ERROR: _surer(point.error),
        Polarity.COMPETENCE: float(_GRID[int(lasting.argmax())]) if lasting[-1] else 1.0,
    }


def _surer(bar: float) -> float:
    return round(max(bar, min(bar + EARLY_SURER, _SUREST)), 2)


def _f_beta(right: NDArray[np.bool_], flagged: NDArray[np.bool_], beta: float) -> float:
    hits = float((right & flagged).sum())
    return (1 + beta**2) * hits / max(beta**2 * float(right.sum()) + float(flagged.sum()), 1.0)


def _table(units: Sequence[LabelledUnit]) -> Table:
    return Table.of([unit.facts for unit in units], tuple(MEASURES))
