"""What a judge adds to the cues of an encounter, and the cache of what the senses made of it."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.prompt import Question
from norm_core.engines.request_context import RequestContext
from norm_core.records.flag import Polarity
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import ReplayClock, s_to_ns
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.encounters.library import find, read
from norm_monitor.judge.judge import Judge
from norm_monitor.judge.triggers import NO_CEILING
from norm_monitor.replay.judge_stand_in import JudgeStandIn
from sim_replays.monitor_bench.event_metrics import EventSession, score_online
from sim_replays.monitor_bench.script_driver import monitor_script
from tactful_cli.main import app
from tests.norm_core.engines.fake_server import DEAD_URL, describe_model
from tests.norm_core.engines.scripted import ScriptedBackend

ENCOUNTER = read(find("kiosk_directions"))


def answering(
    act: Callable[[Question, RequestContext], Sequence[float]] | None = None, clock: ReplayClock | None = None
) -> JudgeStandIn:
    """A judge that finds an error of every attribute in each window, or does what act does."""
    clock = clock or ReplayClock()

    def error(question: Question, call: RequestContext) -> Sequence[float]:
        return [4.0] + [0.0] * (len(question.options) - 1)

    backend = ScriptedBackend(act or error, '{"rationale": "It went wrong.", "correction": "Wait."}')
    return JudgeStandIn(Judge(DirectEngine(backend, clock)), clock)


def judged(meaning: EncoderMatcher, table: ThresholdTable, asking: JudgeStandIn) -> EventSession:
    return monitor_script(ENCOUNTER, meaning, table, attend=asking, calls_per_hour=NO_CEILING)


def test_a_judge_adds_alarms_to_those_of_the_cues(meaning: EncoderMatcher) -> None:
    table, asking = ThresholdTable.shipped(), answering()
    alone = monitor_script(ENCOUNTER, meaning, table)
    together = judged(meaning, table, asking)
    assert "" in {alarm.cue_id for alarm in together.alarms}  # of no cue
    assert score_online([together], Polarity.ERROR).flags > score_online([alone], Polarity.ERROR).flags
    assert asking.outcomes == {Outcome.ANSWERED: len(asking.spent_s)}


def test_a_judge_that_fails_leaves_the_cues_as_they_are(meaning: EncoderMatcher) -> None:
    def broken(question: Question, call: RequestContext) -> Sequence[float]:
        raise EngineFailedError("the server is gone")

    table, asking = ThresholdTable.shipped(), answering(broken)
    assert judged(meaning, table, asking) == monitor_script(ENCOUNTER, meaning, table)
    assert set(asking.outcomes) == {Outcome.FAILED}
    assert list(asking.reasons) == ["the server is gone"]


def test_a_judge_that_hangs_times_out_in_a_replay(meaning: EncoderMatcher) -> None:
    clock = ReplayClock()

    def hang(question: Question, call: RequestContext) -> Sequence[float]:
        clock.advance_to(clock.now_ns() + s_to_ns(3600))
        return [4.0] + [0.0] * (len(question.options) - 1)

    table, asking = ThresholdTable.shipped(), answering(hang, clock)
    assert judged(meaning, table, asking) == monitor_script(ENCOUNTER, meaning, table)
    assert set(asking.outcomes) == {Outcome.TIMED_OUT}


def test_answers_too_late_for_a_live_monitor_are_counted(meaning: EncoderMatcher) -> None:
    clock = ReplayClock()

    def think(question: Question, call: RequestContext) -> Sequence[float]:
        clock.advance_to(clock.now_ns() + s_to_ns(11))
        return [0.0] * (len(question.options) - 1) + [4.0]  # ordinary conduct: no further question

    asking = answering(think, clock)
    judged(meaning, ThresholdTable.shipped(), asking)
    assert asking.count_late(s_to_ns(10)) == len(asking.spent_s) > 0
    assert asking.count_late(s_to_ns(12)) == 0


def test_the_verb_shows_cues_alone_beside_cues_and_model(
    own_models: Path, monkeypatch: pytest.MonkeyPatch, meaning: EncoderMatcher
) -> None:
    describe_model(own_models, "dead", DEAD_URL)
    monkeypatch.setattr("sim_replays.verbs.monitor_bench.load_meaning", lambda: meaning)  # the same, not loaded again
    asked = ["bench", "monitor", "--limit", "1", "--json", "--model", "dead"]
    output = json.loads(CliRunner().invoke(app, asked).stdout)
    assert output["judge"]["outcomes"] == {"failed": output["judge"]["units"]}
    assert output["judge"]["units"] > 0
    assert output["judge"]["errors"] == output["errors"]
