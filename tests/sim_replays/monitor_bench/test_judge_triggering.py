"""What a judge is shown and adds: by hand, and on an encounter of the development split."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from norm_core.engines.engine import Engine
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.prompt import Question
from norm_core.engines.request_context import RequestContext
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import NS_PER_S, ReplayClock, s_to_ns
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.judge.judge import Judge
from norm_monitor.units.unit import Unit
from sim_replays.drivers.script_driver import monitor_script
from sim_replays.monitor_bench.event_metrics import score_online
from sim_replays.monitor_bench.judge_triggering import (
    BUDGETS,
    JudgeStandIn,
    measure_judge,
    measure_triggering,
    run_with_judge,
)
from sim_replays.scenarios.encounter import Basis
from sim_replays.scenarios.library import find, read
from sim_replays.scenarios.truth import TrueEvent, Truth
from tactful_cli.main import app
from tests.norm_core.engines.fake_server import DEAD_URL, describe_model
from tests.norm_core.engines.scripted import ScriptedBackend

ENCOUNTER = read(find("kiosk_directions"))


@pytest.fixture(scope="module")
def meaning() -> EncoderMatcher:
    return EncoderMatcher.shipped()


def answering(
    act: Callable[[Question, RequestContext], Sequence[float]] | None = None, clock: ReplayClock | None = None
) -> JudgeStandIn:
    """A judge that finds an error of every attribute in each window, or does what act does."""
    clock = clock or ReplayClock()

    def error(question: Question, call: RequestContext) -> Sequence[float]:
        return [4.0] + [0.0] * (len(question.options) - 1)

    backend = ScriptedBackend(act or error, '{"rationale": "It went wrong.", "correction": "Wait."}')
    return JudgeStandIn(Judge(Engine(backend, clock)), clock)


def truth(*spans_s: tuple[float, float]) -> Truth:
    events = tuple(
        TrueEvent(
            polarity=Polarity.ERROR,
            attributes=(Attribute.EMOTIONS,),
            onset_ns=s_to_ns(onset_s),
            offset_ns=s_to_ns(offset_s),
            basis=Basis.WORDING,
            evidence=(),
            rationale="",
        )
        for onset_s, offset_s in spans_s
    )
    return Truth(encounter_id="e", language="en", seed=0, start_ns=0, end_ns=1800 * NS_PER_S, turns=(), events=events)


def test_an_event_is_seen_by_one_unit_near_its_onset() -> None:
    units = [Unit.of_sighting("leaving", s_to_ns(onset_s), None) for onset_s in (13, 30)]
    found = measure_judge([(truth((12, 14), (14, 15), (29, 32), (2, 9)), units)], 240)
    missed = found.missed["errors"]
    assert (missed.events, missed.unseen) == (4, 50.0)
    assert found.missed["errors by wording"] == missed
    assert found.calls_per_hour == 4.0


def test_who_is_asked_more_often_misses_less(meaning: EncoderMatcher) -> None:
    table = ThresholdTable.shipped()
    seldom, often = (measure_triggering([ENCOUNTER], meaning, table, budget) for budget in (BUDGETS[0], BUDGETS[-1]))
    assert seldom.units < often.units
    assert often.missed["competences"].unseen <= seldom.missed["competences"].unseen
    assert often.missed["competences"].unseen == 0


def test_a_judge_adds_alarms_to_those_of_the_cues(meaning: EncoderMatcher) -> None:
    table, asking = ThresholdTable.shipped(), answering()
    alone = monitor_script(ENCOUNTER, meaning, table)
    (together,) = run_with_judge([ENCOUNTER], meaning, table, asking)
    assert "" in {alarm.cue_id for alarm in together.alarms}  # of no cue
    assert score_online([together], Polarity.ERROR).flags > score_online([alone], Polarity.ERROR).flags
    assert asking.outcomes == {Outcome.ANSWERED: len(asking.spent_s)}


def test_a_judge_that_fails_leaves_the_cues_as_they_are(meaning: EncoderMatcher) -> None:
    def broken(question: Question, call: RequestContext) -> Sequence[float]:
        raise EngineFailedError("the server is gone")

    table, asking = ThresholdTable.shipped(), answering(broken)
    assert run_with_judge([ENCOUNTER], meaning, table, asking) == [monitor_script(ENCOUNTER, meaning, table)]
    assert set(asking.outcomes) == {Outcome.FAILED}
    assert list(asking.reasons) == ["the server is gone"]


def test_a_judge_that_hangs_times_out_in_a_replay(meaning: EncoderMatcher) -> None:
    clock = ReplayClock()

    def hang(question: Question, call: RequestContext) -> Sequence[float]:
        clock.advance_to(clock.now_ns() + s_to_ns(3600))
        return [4.0] + [0.0] * (len(question.options) - 1)

    table, asking = ThresholdTable.shipped(), answering(hang, clock)
    assert run_with_judge([ENCOUNTER], meaning, table, asking) == [monitor_script(ENCOUNTER, meaning, table)]
    assert set(asking.outcomes) == {Outcome.TIMED_OUT}


def test_answers_too_late_for_a_live_monitor_are_counted(meaning: EncoderMatcher) -> None:
    clock = ReplayClock()

    def think(question: Question, call: RequestContext) -> Sequence[float]:
        clock.advance_to(clock.now_ns() + s_to_ns(11))
        return [0.0] * (len(question.options) - 1) + [4.0]  # ordinary conduct: no further question

    asking = answering(think, clock)
    run_with_judge([ENCOUNTER], meaning, ThresholdTable.shipped(), asking)
    assert asking.late_count(s_to_ns(10)) == len(asking.spent_s) > 0
    assert asking.late_count(s_to_ns(12)) == 0


def test_the_verb_shows_cues_alone_beside_cues_and_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meaning: EncoderMatcher
) -> None:
    describe_model(tmp_path, "dead", DEAD_URL)
    monkeypatch.setenv("TACTFUL_MODELS", str(tmp_path))
    monkeypatch.setattr("tactful_cli.bench.monitor_bench.load_meaning", lambda: meaning)  # the same, not loaded again
    asked = ["bench", "monitor", "--limit", "1", "--json"]
    told = json.loads(CliRunner().invoke(app, [*asked, "--model", "dead"]).stdout)
    assert told["judge"]["outcomes"] == {"failed": told["judge"]["units"]}
    assert told["judge"]["units"] > 0
    assert told["judge"]["errors"] == told["errors"]
    budgets = json.loads(CliRunner().invoke(app, [*asked, "--triggering"]).stdout)["budgets"]
    assert budgets["60"]["units"] <= budgets["240"]["units"] <= budgets["36000"]["units"]
