"""A turn that surely reads amiss is flagged at its end; an answer confirms or withdraws the flag."""

from dataclasses import replace
from typing import Any

import pytest

from norm_core.records.flag import FlagState, Polarity
from norm_monitor.context.meaning import Meanings
from norm_monitor.exchange.exchange_record import Exchange, ExchangePrediction
from tests.norm_monitor.encounter_talk import Watched, robot, seconds, user


class _Reads:
    """The shipped meanings with a given reading before the answer, and another with it."""

    def __init__(self, meaning: Meanings, before: float, after: float) -> None:
        self._meaning, self._before, self._after = meaning, before, after

    def read(self, exchange: Exchange) -> ExchangePrediction:
        likely = self._after if exchange.after else self._before
        share = {Polarity.ERROR: likely, Polarity.COMPETENCE: 0.0}
        return replace(self._meaning.read(exchange), probability=share, precision_at_score=share)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._meaning, name)


def _flags(meaning: Meanings, before: float, after: float) -> list[tuple[FlagState, float]]:
    talk = user(0, 2, "My dog died."), robot(3, 5, "Dogs live eleven years."), user(7, 9, "I see what you mean by it.")
    flags = Watched(_Reads(meaning, before, after)).watch(*talk, until_s=16)
    return [(flag.state, seconds(flag.decision_ns)) for flag in flags if flag.cue_id == "reads_amiss"]


def test_sure_error_is_flagged_at_the_end_of_the_turn(meaning: Meanings) -> None:
    (state, decided_s), *_ = _flags(meaning, 0.9, 0.95)
    assert state is FlagState.OPENED
    assert decided_s == pytest.approx(5, abs=1)


def test_doubtful_error_waits_for_the_answer(meaning: Meanings) -> None:
    (_, decided_s), *_ = _flags(meaning, 0.5, 0.95)
    assert decided_s >= 9


def test_answer_that_refutes_an_error_withdraws_it(meaning: Meanings) -> None:
    assert [state for state, _ in _flags(meaning, 0.9, 0.1)] == [FlagState.OPENED, FlagState.WITHDRAWN]
