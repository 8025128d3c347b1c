"""What a judge adds to the cues of an encounter, at any budget, and the cache of what the senses made of it."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from norm_core.bags.reader import BagReader
from norm_core.engines.engine import Engine
from norm_core.engines.errors import EngineFailedError
from norm_core.engines.prompt import Question
from norm_core.engines.request_context import RequestContext
from norm_core.records.flag import Evidence, Polarity, SocialFlag
from norm_core.records.frame import Frame
from norm_core.records.json_codec import from_json, to_json
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import NS_PER_S, ReplayClock, s_to_ns
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.judge.excerpt import UnitView
from norm_monitor.judge.judge import Judge
from norm_monitor.judge.triggers import NO_CEILING
from norm_monitor.monitor import Monitor
from norm_monitor.units.unit import UnitJudgement, UnitKind
from sim_replays.drivers.script_driver import SensedEncounter, monitor_script, records_of_script, sense_bag
from sim_replays.monitor_bench.event_metrics import EncounterScores, EventSession, score_encounters, score_online
from sim_replays.monitor_bench.judge_stand_in import JudgeStandIn
from sim_replays.scenarios.encounter import Encounter
from sim_replays.scenarios.library import TrueEvent, find, read
from tactful_cli.main import app
from tests.norm_core.engines.fake_server import DEAD_URL, describe_model
from tests.norm_core.engines.scripted import ScriptedBackend
from tests.sensed_bag import TOPICS, write_sensed

ENCOUNTER = read(find("kiosk_directions"))


def answering(
    act: Callable[[Question, RequestContext], Sequence[float]] | None = None, clock: ReplayClock | None = None
) -> JudgeStandIn:
    """A judge that finds an error of every attribute in each window, or does what act does."""
    clock = clock or ReplayClock()

    def error(question: Question, call: RequestContext) -> Sequence[float]:
        return [4.0] + [0.0] * (len(question.options) - 1)

    backend = ScriptedBackend(act or error, '{"rationale": "It went wrong.", "correction": "Wait."}')
    return JudgeStandIn(Judge(Engine(backend, clock)), clock)


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
    assert asking.late_count(s_to_ns(10)) == len(asking.spent_s) > 0
    assert asking.late_count(s_to_ns(12)) == 0


def test_the_verb_shows_cues_alone_beside_cues_and_model(
    own_models: Path, monkeypatch: pytest.MonkeyPatch, meaning: EncoderMatcher
) -> None:
    describe_model(own_models, "dead", DEAD_URL)
    monkeypatch.setattr("tactful_cli.bench.monitor_bench.load_meaning", lambda: meaning)  # the same, not loaded again
    asked = ["bench", "monitor", "--limit", "1", "--json", "--model", "dead"]
    told = json.loads(CliRunner().invoke(app, asked).stdout)
    assert told["judge"]["outcomes"] == {"failed": told["judge"]["units"]}
    assert told["judge"]["units"] > 0
    assert told["judge"]["errors"] == told["errors"]


BUDGETS = (10.0, 100.0, 240.0, 1000.0)
SAME_NS = NS_PER_S // 5


class KnowingJudge:
    """Answer by the labels; one that charges answers charges a late one in place of the silence before it."""

    def __init__(self, encounter: Encounter, charges_answers: bool) -> None:
        _, truth = records_of_script(encounter)
        self._events, self._charges_answers = truth.events, charges_answers

    def __call__(self, monitor: Monitor) -> Iterator[SocialFlag]:
        for view in monitor.units_to_judge():
            yield from monitor.take_judgement(_judgement(view, self._event_of(view)))

    def _event_of(self, view: UnitView) -> TrueEvent | None:
        unit, onsets_ns = view.unit, [view.unit.onset_ns]
        if self._charges_answers and unit.kind is UnitKind.ROBOT_TURN:  # the silence before it began then
            onsets_ns += [max((turn.end_ns for turn in view.turns if turn.end_ns < unit.onset_ns), default=0)]
        elif self._charges_answers and any(turn.is_robot and turn.start_ns == unit.offset_ns for turn in view.turns):
            return None
        near = (one for at_ns in onsets_ns for one in self._events if abs(one.onset_ns - at_ns) <= SAME_NS)
        return next(near, None)


def _judgement(view: UnitView, event: TrueEvent | None) -> UnitJudgement:
    fact = Evidence(measure="m", value=0.9, start_ns=view.unit.onset_ns, end_ns=view.unit.onset_ns)
    return UnitJudgement(
        unit=view.unit,
        outcome=Outcome.ANSWERED,
        probability={one: 0.9 if event and event.polarity is one else 0.05 for one in Polarity},
        attributes=event.attributes if event else (),
        evidence=(fact,) if event else (),
        rationale=event.rationale if event else "",
        correction=(event.correction or "Mend it.") if event and event.polarity is Polarity.ERROR else "",
    )


# Each flags several events wrongly without a judge; two hold a late answer.
NAMES = ("w13_ferry_lounge_sleeper", "w05_brave_arm", "w02_foot_clinic", "w10_court_corridor")


@pytest.fixture(scope="module")
def alone(meaning: EncoderMatcher) -> EncounterScores:
    return scores(meaning, 0.0)


def scores(meaning: EncoderMatcher, calls_per_hour: float, *, charges_answers: bool = False) -> EncounterScores:
    table, talks = ThresholdTable.shipped(), [read(find(name)) for name in NAMES]
    judged = ((talk, KnowingJudge(talk, charges_answers)) for talk in talks)
    return score_encounters([monitor_script(talk, meaning, table, 0, judge, calls_per_hour) for talk, judge in judged])


@pytest.mark.parametrize("charges_answers", [False, True], ids=["labels' unit", "late answer"])
def test_a_judge_that_is_right_makes_flags_better_at_any_budget(
    meaning: EncoderMatcher, alone: EncounterScores, charges_answers: bool
) -> None:
    for calls_per_hour in BUDGETS:
        judged = scores(meaning, calls_per_hour, charges_answers=charges_answers)
        for polarity in Polarity:
            assert judged.of(polarity).f1 >= alone.of(polarity).f1, (calls_per_hour, polarity)
    for polarity in Polarity:
        assert judged.of(polarity).f1 > alone.of(polarity).f1 + 5


def test_frames_are_kept_in_their_place_without_their_pictures_bytes(tmp_path: Path) -> None:
    encounter = read(find("kiosk_directions"))
    _, truth = records_of_script(encounter)
    bag = tmp_path / "bag"
    write_sensed(bag, encounter, 8.0)
    kept = from_json(SensedEncounter, to_json(sense_bag(bag, truth, None)))
    with BagReader(bag) as reader:
        shown = [reader.decode(one) for one in reader.messages([TOPICS[Frame]])]
    frames = [one.entry for one in kept.given if isinstance(one.entry, Frame)]
    assert [(f.stamp_ns, f.source_topic, f.payload_sha256) for f in frames] == [
        (f.stamp_ns, f.source_topic, f.payload_sha256) for f in shown
    ]
    assert frames
    assert {frame.tile_jpeg for frame in frames} == {b""}
    assert [one.at_ns for one in kept.given] == sorted(one.at_ns for one in kept.given)
