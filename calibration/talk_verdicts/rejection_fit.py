"""Fit the weights of rejections: what people's verdicts on a robot's turns say of the turns' facts."""

from collections.abc import Callable, Iterable, Sequence
from datetime import date

import numpy as np
from numpy.typing import NDArray

from calibration.additive_fit import Table, fit_additive
from calibration.talk_verdicts.talk_file import JudgedTurn
from norm_core.records.record import record
from norm_monitor.assessment.rejection import FORMAT, KIND, RejectionModel, estimate_rejection
from norm_monitor.assessment.unit_facts import MEASURES, Facts
from norm_monitor.assessment.unit_model import MADE_WITH, AdditiveScore

# The talk reader adds nothing here (SCOUT, people left out, 2026-11-29), so one file serves every size and none.
_NAMES = tuple(name for name in MEASURES if not name.startswith("reader_"))
# What sense says of a fact: a rejection is no less likely the more there is of it.
_RISING = (
    *("person_says_again", "person_corrects", "says_again", "unclear"),
    *("text_error_log_odds", "text_error_log_odds_without_reaction", "encounter_model_error"),
)
_PARTS = 10
Array = NDArray[np.float64]


@record
class MeasuredTurn:
    """A judged turn, and what the monitor made of it once it took no more evidence."""

    judged: JudgedTurn
    error: float | None  # its probability; None before the first turn that is measured
    at_once: Facts  # empty if somebody spoke before it was measured
    with_reaction: Facts


def fit_rejection(turns: Sequence[MeasuredTurn]) -> RejectionModel:
    """Fit both sets of weights on all of these turns."""
    groups, faults = {turn.judged.group for turn in turns}, sum(turn.judged.turn.is_fault for turn in turns)
    return RejectionModel(
        kind=KIND,
        format=FORMAT,
        made_on=date.today().isoformat(),
        made_with=MADE_WITH,
        fitted_on={"people": str(len(groups)), "turns": str(len(turns)), "of them rejected": str(faults)},
        at_once=_fit_score(turns, lambda turn: turn.at_once),
        with_reaction=_fit_score(turns, lambda turn: turn.with_reaction),
    )


def estimate_left_out(turns: Sequence[MeasuredTurn]) -> tuple[Array, Array]:
    """Return each turn's rejection with what followed, and at once, by weights fitted without a tenth of the groups."""
    groups = sorted({turn.judged.group for turn in turns})
    part_of = {group: place % _PARTS for place, group in enumerate(groups)}
    models = [
        fit_rejection([turn for turn in turns if part_of[turn.judged.group] != part])
        for part in range(min(_PARTS, len(groups)))
    ]
    return estimate_each((models[part_of[turn.judged.group]], turn) for turn in turns)


def estimate_each(turns: Iterable[tuple[RejectionModel, MeasuredTurn]]) -> tuple[Array, Array]:
    """Return each turn's rejection by its model: with what followed, and at once."""
    rows = [
        (estimate_rejection(model.with_reaction, turn.with_reaction), estimate_rejection(model.at_once, turn.at_once))
        for model, turn in turns
    ]
    with_reaction, at_once = np.array(rows, float).reshape(-1, 2).T
    return with_reaction, at_once


def _fit_score(turns: Sequence[MeasuredTurn], facts_of: Callable[[MeasuredTurn], Facts]) -> AdditiveScore:
    known = [turn for turn in turns if facts_of(turn)]
    table = Table.of([facts_of(turn) for turn in known], _NAMES)
    labels = np.array([[turn.judged.turn.is_fault] for turn in known], bool).reshape(-1, 1)
    return fit_additive(table, labels, np.ones(len(known)), [_RISING]).score(0, table)
