"""Flags in words: what is measured, cited and weighed, and how it adds up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.records.flag import YES_OR_NO, Evidence, Polarity
from norm_core.records.speech import Speaker
from norm_core.runtime.time import NS_PER_S
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.context.turns import Turn
from norm_monitor.fusion.explanation import SMALLER_FACTS, cited_facts, explain, measurement
from norm_monitor.fusion.unit_model import shipped_unit_model
from norm_monitor.units.unit import Unit, UnitKind
from norm_monitor.units.unit_facts import MEASURES, MeasuredUnit
from tests.norm_monitor.encounter_talk import Watched, last_of, robot, user


def test_an_explanation_says_what_was_measured_against_what(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning).watch(
        user(0, 2, "Where can I buy a ticket?"), robot(6.5, 9, "At the counter, over there.")
    )
    text = explain(last_of(flags)["response_delay"])
    assert text.startswith("Major social error (conversational mechanics)")
    assert "4.5 s against a threshold of 2 s, in “Where can I buy a ticket?”" in text
    assert "Instead: Answer within two seconds" in text
    assert "from cues alone (response_delay)" in text


@pytest.mark.parametrize(
    ("value", "said"), [(1.0, "the turn asks: yes, weight +0.50"), (0.0, "the turn asks: no, weight +0.50")]
)
def test_a_fact_that_holds_or_not_is_told_in_words(value: float, said: str) -> None:
    asks = Evidence(measure="the turn asks", value=value, weight=0.5, unit=YES_OR_NO, start_ns=0, end_ns=1)
    assert measurement(asks) == said


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
