"""A known-dead server is refused at once and probed ever more rarely, by a clock that is passed in."""

import pytest

from norm_core.engines.engine_health import ServerStatus
from norm_core.engines.openai.client import CircuitBreaker


class HandClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.at_s = 100.0

    def __call__(self) -> float:
        return self.at_s


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def breaker(clock: HandClock) -> CircuitBreaker:
    return CircuitBreaker(clock)


def test_requests_pass_until_a_connection_fails(breaker: CircuitBreaker) -> None:
    assert breaker.refuse() == ""
    assert breaker.until_probe_s() is None
    assert breaker.status == ServerStatus()


def test_an_open_breaker_refuses_and_counts(breaker: CircuitBreaker) -> None:
    assert breaker.open("no route")
    assert [breaker.refuse(), breaker.refuse()] == ["no route", "no route"]
    assert breaker.status == ServerStatus(outage="no route", requests_refused=2)


def test_a_probe_is_due_after_its_pause(breaker: CircuitBreaker, clock: HandClock) -> None:
    breaker.open("no route")
    clock.at_s += 0.4
    assert breaker.until_probe_s() == pytest.approx(0.1)
    clock.at_s += 10
    assert breaker.until_probe_s() == 0.0


def test_pauses_double_up_to_the_longest(breaker: CircuitBreaker) -> None:
    pauses_s = []
    for _ in range(7):
        breaker.open("no route")
        pauses_s.append(breaker.until_probe_s())
    assert pauses_s == [0.5, 1, 2, 4, 8, 15, 15]


def test_a_second_outage_begins_with_the_short_pause(breaker: CircuitBreaker) -> None:
    for _ in range(4):
        breaker.open("no route")
    breaker.close()
    assert breaker.refuse() == ""
    assert breaker.open("down again")
    assert breaker.until_probe_s() == 0.5
