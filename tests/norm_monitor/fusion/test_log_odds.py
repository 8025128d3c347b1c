"""The weights of a flag's evidence add up to its probability, whatever the evidence is."""

from math import exp

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from norm_core.records.flag import FlagState, Polarity, SocialFlag
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.cues.finding import Finding
from norm_monitor.units.unit import UnitJudgement
from tests.norm_monitor.encounter_talk import Watched, robot, user
from tests.norm_monitor.fusion.test_fusion import competence, finding, fusion, judgement, taken, unit

LIKELY = st.floats(0.3, 1.0)


def summed(flag: SocialFlag) -> float:
    """Add up what the flag states, as a reader does."""
    assert flag.base_log_odds is not None
    return 1 / (1 + exp(-flag.base_log_odds - sum(one.weight or 0.0 for one in flag.evidence)))


@given(
    errors=st.lists(LIKELY, max_size=3),
    competences=st.lists(LIKELY, max_size=2),
    judged=st.none() | st.floats(0, 0.95),
    judge_weight=st.floats(0, 2),
)
def test_cues_and_a_judge_add_up_to_the_probability(
    errors: list[float], competences: list[float], judged: float | None, judge_weight: float
) -> None:
    evidence: list[Finding | UnitJudgement] = [
        *(finding(unit(), f"error_{n}", probability=likely) for n, likely in enumerate(errors)),
        *(competence(unit(), f"good_{n}", probability=likely) for n, likely in enumerate(competences)),
    ]
    evidence += [] if judged is None else [judgement(unit(), judged)]
    taken_flags = taken(fusion(judge_weight=judge_weight, sensitivity="keen"), *evidence)
    # A withdrawn flag names what changed instead.
    flags = [flag for flag in taken_flags if flag.state is not FlagState.WITHDRAWN]
    assume(flags)  # evidence that falls short of each threshold shows nothing
    assert [summed(flag) for flag in flags] == [pytest.approx(flag.probability, abs=0.01) for flag in flags]


def test_the_facts_of_a_talk_add_up_to_the_probability(meaning: EncoderMatcher) -> None:
    flags = Watched(meaning, weighed=True).watch(
        user(0, 2, "Where can I buy a ticket?"),
        robot(6.5, 9, "At the counter, over there."),
        user(9.5, 11, "That is not what I asked!"),
        robot(12, 14, "I'm sorry. Let me show you the way to it."),
    )
    assert {flag.polarity for flag in flags} == set(Polarity)
    assert all(any(one.measure == "smaller facts, together" for one in flag.evidence) for flag in flags)
    assert [summed(flag) for flag in flags] == [pytest.approx(flag.probability, abs=0.01) for flag in flags]


def test_a_flag_tells_from_which_probability_it_is_raised() -> None:
    (flag, _) = taken(fusion(bars=("error=0.5", "emotions=0.6")), finding(unit(), probability=0.7))
    assert flag.least_probability == 0.6
    (flag, _) = taken(fusion(bars=("error=0.5",)), finding(unit(), probability=0.7))
    assert flag.least_probability == 0.5
