"""Live latencies against the budget that was measured for the machine."""

import math

import pytest

from norm_core.runtime.config import ConfigError, check_config
from norm_core.runtime.latency_budget import LATEST, LEAST, BudgetConfig, LatencyBudget


def budget_of(*latencies_ms: float) -> LatencyBudget:
    budget = LatencyBudget("transcription", "name a smaller model")
    for latency_ms in latencies_ms:
        budget.add(latency_ms)
    return budget


def test_latencies_over_the_budget_are_told_with_the_figures_and_a_remedy_until_they_go_back() -> None:
    budget = budget_of(*[100.0] * LEAST)
    assert budget.reason(150.0) == ""
    for _ in range(LEAST):
        budget.add(240.0)
    reason = budget.reason(150.0)
    assert f"transcription: live p95 of 240 ms over the last {2 * LEAST} is over the budget of 150 ms" in reason
    assert "name a smaller model" in reason
    assert "calibrate budget" in reason
    for _ in range(LATEST):
        budget.add(100.0)
    assert budget.reason(150.0) == ""


def test_few_latencies_and_no_budget_are_told_nothing_of() -> None:
    assert budget_of(*[240.0] * (LEAST - 1)).reason(150.0) == ""
    assert budget_of(*[240.0] * LEAST).reason(0.0) == ""
    assert budget_of().counters() == ()


def test_rare_slow_answers_are_within_p95() -> None:
    assert budget_of(*[100.0] * 97, *[900.0] * 3).reason(150.0) == ""
    assert budget_of(*[100.0] * 90, *[900.0] * 10).reason(150.0)


def test_the_counters_give_p95_in_microseconds() -> None:
    counts = {counter.name: counter.count for counter in budget_of(*[1.5] * 4).counters()}
    assert counts == {"latency_p95_us_transcription": 1500, "latency_count_transcription": 4}


def test_work_that_fails_is_not_timed() -> None:
    budget = budget_of()
    with pytest.raises(ValueError, match="failed"), budget.timed():
        raise ValueError("failed")
    assert budget.p95_ms() is None
    with budget.timed():
        pass
    assert budget.p95_ms() is not None


@pytest.mark.parametrize("p95_ms", [math.nan, math.inf, -1.0])
def test_a_budget_that_is_no_number_is_refused(p95_ms: float) -> None:
    with pytest.raises(ConfigError, match="p95_ms"):
        check_config(BudgetConfig, {"p95_ms": p95_ms}, "parameters of ears")
