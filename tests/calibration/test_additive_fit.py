"""Additive scores find what labels depend on, keep to what sense says, and survive being written down."""

from collections.abc import Mapping

import numpy as np
import pytest

from calibration.additive_fit import AdditiveFit, Table, find_least_scores, fit_additive
from calibration.fit_units import fit_polarities, fit_slow_kinds
from calibration.unit_examples import LabelledUnit
from norm_core.records.flag import Attribute, Polarity
from norm_monitor.assessment.unit import UnitKind

COUNT = 600


def rows(seed: int = 0) -> list[dict[str, float]]:
    """One fact that matters, one of chance, and one that is missing in every third row."""
    random = np.random.default_rng(seed)
    found = []
    for row in range(COUNT):
        facts = {"matters": float(random.normal()), "chance": float(random.normal())}
        found.append(facts if row % 3 else {**facts, "sometimes": float(random.normal())})
    return found


def fitted(found: list[dict[str, float]], labels: np.ndarray, **more: object) -> tuple[Table, AdditiveFit]:
    table = Table.of(found, ("matters", "chance", "sometimes"))
    return table, fit_additive(table, labels, np.ones(len(found)), **more)  # type: ignore[arg-type]


def above_zero(found: list[dict[str, float]]) -> np.ndarray:
    return np.array([[row["matters"] > 0] for row in found])


def test_a_fit_tells_labels_by_the_fact_that_matters() -> None:
    table, fit = fitted(rows(), above_zero(rows()))
    others = rows(seed=1)
    scores = fit.scores(table.like(others))[:, 0]
    assert np.mean((scores > 0) == above_zero(others)[:, 0]) > 0.95


def test_labels_by_chance_leave_the_share_of_labels() -> None:
    labels = np.random.default_rng(2).random((COUNT, 1)) < 0.2
    table, fit = fitted(rows(), labels)
    likely = 1 / (1 + np.exp(-fit.scores(table.like(rows(seed=1)))))
    assert likely.mean() == pytest.approx(0.2, abs=0.05)


def test_a_fact_that_may_only_rise_never_lowers_a_score() -> None:
    falling = ~above_zero(rows())
    table, fit = fitted(rows(), falling, rising=[["matters"]])
    steps = fit.score(0, table).facts.get("matters")
    assert steps is None or list(steps.values) == sorted(steps.values)


def test_two_classes_share_one_certainty() -> None:
    found = rows()
    labels = np.array([[row["matters"] > 0.5, row["matters"] < -0.5] for row in found])
    table, fit = fitted(found, labels)
    odds = np.exp(fit.scores(table))
    likely = odds / (1 + odds.sum(axis=1, keepdims=True))
    assert (likely.sum(axis=1) < 1).all()
    assert np.mean(likely.argmax(axis=1)[labels.any(axis=1)] == labels.argmax(axis=1)[labels.any(axis=1)]) > 0.97


def test_what_is_written_down_scores_like_the_fit() -> None:
    found = rows()
    table, fit = fitted(found, above_zero(found))
    written = fit.score(0, table)
    scores = fit.scores(table)[:, 0]
    assert [written.of(row) for row in found] == pytest.approx(scores, abs=0.02)


def test_a_fact_that_decides_alone_is_not_outvoted() -> None:
    found = rows()
    labels = above_zero(found)
    table, fit = fitted(found, labels)
    fit.added[0] -= 1.0  # what the other facts say against it
    outvoted = fit.scores(table)[:, 0]
    fit.least = (find_least_scores(table, labels[:, 0], {"matters": (1.0,)}),)
    scores, written = fit.scores(table)[:, 0], fit.score(0, table)
    matters = np.array([row["matters"] for row in found])
    assert (scores[matters > 1] > outvoted[matters > 1]).all()
    # The threshold is that of the bin that holds it.
    assert scores[matters < 0.8] == pytest.approx(outvoted[matters < 0.8])
    assert [written.of(row) for row in found] == pytest.approx(scores, abs=0.02)
    assert [sum(written.parts(row).values()) + written.intercept for row in found] == pytest.approx(scores, abs=0.02)


def test_a_class_without_labels_is_unlikely_and_no_error() -> None:
    table, fit = fitted(rows(), np.zeros((COUNT, 1), bool))
    assert (fit.scores(table) < -5).all()


def test_no_fact_decides_alone_in_weights_for_slow_robots() -> None:
    owed = [silence({"silence_s": 6.0, "owed_silence_s": 6.0}, Polarity.ERROR)] * 40
    units = [*owed, *[silence({"silence_s": 2.0}, None)] * 40]
    _, fit = fit_polarities(units, [UnitKind.SILENCE])[UnitKind.SILENCE]
    assert "owed_silence_s" in fit.least[0]
    slow = fit_slow_kinds(units, [])[UnitKind.SILENCE]
    assert slow.polarities[Polarity.ERROR].least == {}


def silence(facts: Mapping[str, float], polarity: Polarity | None) -> LabelledUnit:
    return LabelledUnit(
        talk=0, kind=UnitKind.SILENCE, onset_ns=0, facts=facts, exchange=None, findings=(), borne_out=(),
        polarity=polarity, attributes=(Attribute.ENGAGEMENT,) if polarity else (),
    )  # fmt: skip
