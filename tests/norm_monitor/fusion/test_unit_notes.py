"""What a flag cites of a unit: measured facts, the heaviest first, and never none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.records.flag import Polarity
from norm_core.records.speech import Speaker
from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.turns import Turn
from norm_monitor.fusion.explanation import SMALLER_FACTS, cited_facts
from norm_monitor.fusion.unit_model import shipped_unit_model
from norm_monitor.units.unit import Unit, UnitKind
from norm_monitor.units.unit_facts import MEASURES, MeasuredUnit

SPAN = NS_PER_S, 2 * NS_PER_S
TURN = Turn(speaker=Speaker.ROBOT, start_ns=SPAN[0], end_ns=SPAN[1], text="Here you are.", turn_id="r1", spans=(SPAN,))
KINDS = st.sampled_from([UnitKind.ROBOT_TURN, UnitKind.SILENCE, UnitKind.PERSON_TURN])
FACTS = st.dictionaries(st.sampled_from(sorted(MEASURES)), st.floats(-5, 100, allow_nan=False), min_size=1)


@given(facts=FACTS, kind=KINDS, polarity=st.sampled_from(Polarity))
def test_a_flag_cites_what_was_measured_and_weighs_most(
    facts: dict[str, float], kind: UnitKind, polarity: Polarity
) -> None:
    score = shipped_unit_model().kinds[kind].polarities[polarity]
    measured = MeasuredUnit(unit=Unit.of_turn(TURN), turn=TURN, facts=facts, exchange=None, settled=True)
    evidence = cited_facts(measured, score)
    added = score.parts(facts)
    cited = [one for one in evidence if one.measure != SMALLER_FACTS]
    weights = [one.weight or 0.0 for one in cited]
    assert {one.measure for one in cited} <= {MEASURES[name][0] for name in facts}
    assert max(map(abs, weights)) == round(max(abs(added.get(name, 0.0)) for name in facts), 2)
    assert weights == sorted(weights, reverse=True)
    assert score.intercept + sum(one.weight or 0.0 for one in evidence) == pytest.approx(score.of(facts), abs=0.01)
