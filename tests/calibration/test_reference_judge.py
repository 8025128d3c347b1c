"""The recorded reference judge: it answers by kind and onset, and is fitted."""

from dataclasses import replace

import pytest

from calibration.leave_one_writer_out import Fold
from calibration.reference_judge.answers import recorded
from calibration.reference_judge.fit import JudgedTalk, WeighedUnit, fit_calibration, left_out, session
from calibration.unit_examples import LabelledRecords, labelled_units
from norm_core.runtime.time import WallClock
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import UnitKind
from norm_monitor.assessment.unit_model import shipped_unit_model
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.encounters.encounter import make_talk_name
from norm_monitor.encounters.generate import START_NS
from norm_monitor.encounters.library import SPLITS, find, read
from norm_monitor.judge.coding import RecordedJudge, UnitKeys, read_answer
from norm_monitor.replay.judge_stand_in import JudgeStandIn
from sim_replays.monitor_bench.script_driver import make_script_records

pytestmark = pytest.mark.skipif("many_hands" not in SPLITS, reason="the encounters by many hands are not here")
# Each flags events wrongly without a judge.
NAMES = ("w02_going_home_chair", "w14_glass_furnace")


def test_the_card_holds_each_answer_by_kind_and_onset() -> None:
    card = recorded()
    assert len(card) == 160
    assert {name.split("/")[0] for name in card} == {f"w{number:02}" for number in range(1, 16)}
    name = "w01/w01_cloakroom_ticket"
    key = f"{UnitKeys(name).talk}_{UnitKind.ROBOT_TURN}_"
    by_onset = {int(one.removeprefix(key)): answer for one, answer in card[name].by_id.items() if one.startswith(key)}
    assert by_onset
    for onset_ns, answer in by_onset.items():
        coding = read_answer(answer, "")
        assert onset_ns >= START_NS
        assert bool(coding.rationale) is bool(coding.attributes)


def test_the_fit_weighs_a_judge_that_knows_and_states_thresholds() -> None:
    model, meaning, table = shipped_unit_model(), EncoderMatcher.shipped(), ThresholdTable.shipped()
    talks = []
    for place, name in enumerate((*NAMES, "w12_stairs_phone")):
        encounter = read(find(name))
        given, truth = make_script_records(encounter)
        talk = make_talk_name(encounter)
        attend = JudgeStandIn(RecordedJudge(talk, recorded()[talk]), WallClock())
        labelled = LabelledRecords(given=tuple(given), sources=(UTTERANCES,), truth=truth)
        units = labelled_units(place, labelled, meaning, table, attend)
        assert 0 < sum(unit.judgement is not None for unit in units) < len(units)
        fold = Fold(writer=encounter.writer, model=model, units=tuple(units))
        weighed = tuple(WeighedUnit(unit=unit, fold=fold) for unit in units)
        talks.append(JudgedTalk(writer=encounter.writer, truth=truth, units=weighed))
    calibration = fit_calibration(talks)
    assert calibration.weight > 0.2
    assert [bar.split("=")[0] for bar in calibration.min_probability] == ["error", "competence"]
    assert left_out(talks)["both"].errors.f1 >= left_out(talks)["fusion alone"].errors.f1
    mute = replace(
        talks[0], units=tuple(replace(one, unit=replace(one.unit, judgement=None)) for one in talks[0].units)
    )
    assert session(mute, calibration) == session(talks[0], None)
