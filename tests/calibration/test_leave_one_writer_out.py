"""Leave one writer out: a writer's own labels decide nothing about the weights that flag that writer."""

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from calibration.fit_units import TrainingSet
from calibration.leave_one_writer_out import (
    DIALOGUES,
    EARLIER,
    CrossValidation,
    EncounterSource,
    Fold,
    MeasuredEncounter,
    collect,
    dialogue_sources,
    flagged,
    folds,
    shipped_sources,
)
from norm_core.records.flag import Attribute, Polarity
from norm_monitor.assessment.unit import UnitKind
from norm_monitor.assessment.unit_facts import Facts
from norm_monitor.assessment.unit_model import OperatingPoint, Sensitivity, UnitModel, UnitReading
from norm_monitor.encounters.library import SPLITS

pytestmark = pytest.mark.skipif("many_hands" not in SPLITS, reason="the encounters by many hands are not here")
WRITERS, EACH = 3, 2


@pytest.fixture(scope="module")
def chosen() -> list[EncounterSource]:
    by_writer: dict[str, list[EncounterSource]] = {}
    for source in shipped_sources(["many_hands"]):
        by_writer.setdefault(source.writer, []).append(source)
    return [source for writer in sorted(by_writer)[:WRITERS] for source in by_writer[writer][:EACH]]


@pytest.fixture(scope="module")
def collected(chosen: list[EncounterSource], tmp_path_factory: pytest.TempPathFactory) -> list[MeasuredEncounter]:
    return collect(chosen, tmp_path_factory.mktemp("sensed"), jobs=1)


@pytest.fixture(scope="module")
def measured(chosen: list[EncounterSource], collected: list[MeasuredEncounter]) -> CrossValidation:
    return CrossValidation(chosen, collected)


def test_each_fold_is_one_writer_and_all_units_are_in_one(
    measured: CrossValidation, collected: list[MeasuredEncounter]
) -> None:
    found = folds(measured.material)
    assert [fold.writer for fold in found] == sorted({one.writer for one in measured.chosen})
    assert sum(len(fold.units) for fold in found) == sum(len(one.units) for one in collected)
    for fold in found:
        assert {measured.chosen[unit.talk].writer for unit in fold.units} == {fold.writer}
        assert fold.model.fitted_on == {"without": fold.writer}


def test_a_writer_s_labels_change_only_the_weights_for_others(
    measured: CrossValidation, chosen: list[EncounterSource], collected: list[MeasuredEncounter]
) -> None:
    left_out = chosen[0].writer
    turned = [
        replace(one, units=tuple(replace(unit, polarity=None, attributes=()) for unit in one.units))
        if source.writer == left_out
        else one
        for source, one in zip(chosen, collected, strict=True)
    ]
    before = {fold.writer: fold.model for fold in folds(measured.material)}
    after = {fold.writer: fold.model for fold in folds(CrossValidation(chosen, turned).material)}
    assert after[left_out].kinds == before[left_out].kinds
    assert after[left_out].operating_points == before[left_out].operating_points
    assert all(after[writer].kinds != before[writer].kinds for writer in before.keys() - {left_out})


def test_what_is_new_to_the_shipped_reader_of_encounters_keeps_its_readings(measured: CrossValidation) -> None:
    material = measured.material
    talks = [replace(talk, is_new=talk.writer == material.talks[0].writer) for talk in material.talks]
    units = [replace(unit, facts={**unit.facts, "encounter_model_error": 7.0}) for unit in material.units]
    rows = np.flatnonzero([unit.exchange is not None for unit in units])
    seen = TrainingSet(units, talks, measured.encoder).seen(rows, rows)
    is_own_reading = {row: seen[row].facts["encounter_model_error"] == 7.0 for row in map(int, rows)}
    assert is_own_reading == {row: talks[units[row].talk].is_new for row in is_own_reading}
    assert set(is_own_reading.values()) == {True, False}


def test_rows_count_every_part_beside_chance(measured: CrossValidation, collected: list[MeasuredEncounter]) -> None:
    found = folds(measured.material)
    rows = measured.rows(found)
    assert {row.sensitivity for row in rows} == set(Sensitivity)
    for sensitivity in Sensitivity:
        own = [row for row in rows if row.sensitivity is sensitivity]
        assert sum(row.encounters for row in own) == WRITERS * EACH
        sessions = flagged(collected, found, sensitivity)
        for polarity in Polarity:
            raised = sum(alarm.polarity is polarity for one in sessions for alarm in one.alarms)
            assert sum(row.scores.of(polarity).flags for row in own) == raised
    for row in rows:
        assert row.part.material != EARLIER
        assert 0 <= row.f1_by_chance[Polarity.ERROR] <= 100


@pytest.mark.parametrize(("early_odds", "is_flagged"), [(9.0, True), (1.0, False)])
def test_an_error_that_is_flagged_as_a_turn_ends_stands(
    collected: list[MeasuredEncounter], early_odds: float, is_flagged: bool
) -> None:
    unit = next(one for one in collected[0].units if one.kind is UnitKind.ROBOT_TURN)
    unit = replace(unit, talk=0, early_facts={"words": 3.0}, findings=())

    def read(_: UnitKind, facts: Facts, *, is_early: bool = False) -> UnitReading:
        odds = {Polarity.ERROR: early_odds if is_early else 0.1, Polarity.COMPETENCE: 0.0}
        return UnitReading(odds=odds, attributes=dict.fromkeys(Polarity, (Attribute.EMOTIONS,)))

    point = OperatingPoint(error=0.5, competence=0.5, false_errors_per_hour=0.0, early={Polarity.ERROR: 0.6})
    model = SimpleNamespace(operating_points={Sensitivity.BALANCED: point}, counted=lambda _, some: some, read=read)
    fold = Fold(writer="w", model=cast(UnitModel, model), units=(unit,))
    alarms = flagged(collected[:1], [fold], Sensitivity.BALANCED)[0].alarms
    assert [alarm.polarity for alarm in alarms] == [Polarity.ERROR] * is_flagged


def test_the_earlier_encounters_count_as_one_writer() -> None:
    assert {one.writer for one in shipped_sources(["development"])} == {EARLIER}


def test_dialogues_have_the_writer_of_their_letter_and_figures_of_their_own() -> None:
    sources = dialogue_sources()
    assert {one.writer for one in sources} == set("ghijklmqtuv")
    assert {one.part.material for one in sources} == {DIALOGUES}
    assert len(sources) == len({one.encounter.id for one in sources}) == 264
