"""A known-dead server is refused at once and probed ever more rarely, by a clock that is passed in."""

import pytest

from norm_core.engines.openai.client import CircuitBreaker


def test_a_probe_is_due_after_its_pause() -> None:
    times_s = iter([100.0, 100.4, 110.4])
    breaker = CircuitBreaker(lambda: next(times_s))
    breaker.open("no route")
    assert breaker.until_probe_s() == pytest.approx(0.1)
    assert breaker.until_probe_s() == 0.0


def test_pauses_double_up_to_the_longest_and_a_second_outage_begins_with_the_short_one() -> None:
    breaker, pauses_s = CircuitBreaker(lambda: 100.0), []
    for _ in range(7):
        breaker.open("no route")
        pauses_s.append(breaker.until_probe_s())
    assert pauses_s == [0.5, 1, 2, 4, 8, 15, 15]
    breaker.close()
    assert breaker.refuse() == ""
    breaker.open("down again")
    assert breaker.until_probe_s() == 0.5
