import pytest

from norm_core.records.flag import YES_OR_NO, Evidence
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.fusion.explanation import explain, measurement
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
