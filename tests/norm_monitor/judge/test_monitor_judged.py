"""The monitor with a judge that answers late, twice, out of order or never, and on difficult input."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from norm_core.engines.direct_engine import DirectEngine
from norm_core.engines.prompt import Prompt
from norm_core.engines.request_context import RequestContext
from norm_core.records.flag import Attribute, Evidence, FlagState, Polarity, SocialFlag
from norm_core.records.outcome import Outcome
from norm_core.records.speech import Utterance, make_silence_mark
from norm_core.runtime.time import ReplayClock
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import UnitJudgement, UnitKind
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.judge.excerpt import UnitView
from norm_monitor.judge.judge import Judge, NoteAnswer
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.windows.cutter import Entry
from tests.node_records import counted
from tests.norm_core.engines.scripted import ScriptedBackend
from tests.norm_monitor.encounter_talk import at, robot, seconds, user

TALK = [
    *user(1, 2, "Where is the tea room, please?"),
    *robot(3, 5, "Find it yourself."),
    *user(6, 7, "That is not kind."),
    *robot(8, 10, "I am very busy."),
]
LATER = [*user(60, 61, "Hello again."), *robot(62, 63, "Hello.")]
MUTED = tuple(ThresholdTable.shipped().cues)


def monitor_of(meaning: TextMatcher) -> Monitor:
    config = MonitorConfig.model_validate(
        {
            "windows": {"sources": ("utterances",), "lateness_s": 0},
            "judge": {"model": "labels", "calls_per_hour": 36_000.0},
            "fusion": {"muted": MUTED},
        }
    )
    return Monitor(config, ThresholdTable.shipped(), meaning, ReplayClock())


def play(
    monitor: Monitor, talk: Iterable[Entry], until_s: int, from_s: int = 0
) -> tuple[list[SocialFlag], list[UnitView]]:
    """Play a talk and the quiet around it; return the flags and the units for the judge."""
    marks = [make_silence_mark(at(second), "utterances") for second in range(from_s, until_s + 1, 5)]
    entries = sorted(chain(talk, marks), key=lambda one: one.end_ns if isinstance(one, Utterance) else one.stamp_ns)
    flags, views = list[SocialFlag](), list[UnitView]()
    for entry in entries:
        flags += monitor.take(entry)
        views += monitor.units_to_judge()
    return flags, views


def error(view: UnitView, probability: float = 0.9) -> UnitJudgement:
    fact = Evidence(measure="m", value=probability, start_ns=view.unit.onset_ns, end_ns=view.unit.onset_ns)
    return UnitJudgement(
        unit=view.unit,
        outcome=Outcome.ANSWERED,
        probability={Polarity.ERROR: probability, Polarity.COMPETENCE: 0.02},
        attributes=(Attribute.SOCIAL_NORMS_AND_ROUTINES,),
        evidence=(fact,),
        rationale="It is rude.",
        correction="Be kind.",
    )


def failed(view: UnitView) -> UnitJudgement:
    return UnitJudgement(unit=view.unit, outcome=Outcome.TIMED_OUT)


def closed(flags: Iterable[SocialFlag]) -> list[float]:
    return [seconds(flag.onset_ns) for flag in flags if flag.state is FlagState.CLOSED]


class Writer(ScriptedBackend):
    """Finds an error in every unit; notes what was published when it was asked for a note."""

    def __init__(self, text: str, published: list[SocialFlag]) -> None:
        super().__init__(lambda question, call: [4.0] + [0.0] * (len(question.options) - 1), text)
        self.published, self.before = published, list[int]()

    def generate(self, prompt: Prompt, call: RequestContext, **asked: Any) -> str:
        self.before.append(len(self.published))
        return super().generate(prompt, call, **asked)


@pytest.mark.parametrize("text", ['{"rationale": "It is unkind.", "correction": "Show the way."}', "no JSON"])
def test_a_flag_is_published_before_its_note_is_asked_for(meaning: TextMatcher, text: str) -> None:
    monitor = monitor_of(meaning)
    _, views = play(monitor, TALK, 20)
    published = list[SocialFlag]()
    backend = Writer(text, published)
    judge = Judge(DirectEngine(backend, ReplayClock()))
    for view in views:
        published += monitor.take_judgement(judge.judge(view))
    opened = list(published)
    assert {flag.state for flag in opened} == {FlagState.OPENED}
    assert backend.before == []
    published += monitor.end_input()
    assert published == opened  # their notes are awaited
    for request in monitor.notes_to_write():
        published += monitor.take_note(judge.write_note(request))
    assert len(backend.before) == len(opened)
    assert min(backend.before) >= len(opened)
    events = {flag.event_id: flag for flag in published if flag.state is FlagState.CLOSED}
    for flag in opened:
        noted = events[flag.event_id]
        assert flag.rationale.startswith("The model takes")
        assert noted.correction == ("Show the way." if "JSON" not in text else flag.correction)
        assert noted.rationale == ("It is unkind." if "JSON" not in text else flag.rationale)
        assert (noted.decision_ns, noted.probability) == (flag.decision_ns, flag.probability)
    assert not monitor.notes_to_write()


def test_unit_without_a_flag_gets_no_note(meaning: TextMatcher) -> None:
    monitor = monitor_of(meaning)
    _, views = play(monitor, TALK, 20)
    for view in views:
        assert monitor.take_judgement(replace(error(view, 0.3), awaits_note=True)) == []
    assert not monitor.notes_to_write()


def test_note_after_the_close_is_only_counted(meaning: TextMatcher) -> None:
    monitor = monitor_of(meaning)
    _, views = play(monitor, TALK, 20)
    monitor.take_judgement(replace(error(views[0]), awaits_note=True))
    (request,) = monitor.notes_to_write()
    play(monitor, LATER, 80, from_s=25)
    assert monitor.take_note(NoteAnswer(judgement=request.judgement, outcome=Outcome.ANSWERED)) == []
    assert counted(monitor)["notes_after_close"] == 1


@pytest.mark.parametrize("order", [list, lambda views: views[::-1], lambda views: [*views, *views]])
def test_order_and_number_of_answers_change_no_flag(
    meaning: TextMatcher, order: Callable[[list[UnitView]], list[UnitView]]
) -> None:
    monitor = monitor_of(meaning)
    _, views = play(monitor, TALK, 20)
    robot_turns = [view for view in views if view.unit.kind is UnitKind.ROBOT_TURN]
    flags = [flag for view in order(robot_turns) for flag in monitor.take_judgement(error(view))]
    flags += [flag for view in views for flag in monitor.take_judgement(failed(view))]
    assert [flag.state for flag in flags] == [FlagState.OPENED] * 2
    assert closed(monitor.end_input()) == [3, 8]


def test_answer_after_the_close_is_only_counted(meaning: TextMatcher) -> None:
    monitor = monitor_of(meaning)
    _, views = play(monitor, TALK, 20)
    play(monitor, LATER, 80, from_s=25)
    assert [flag for view in views for flag in monitor.take_judgement(error(view))] == []
    assert counted(monitor)["judgements_after_close"] == len(views)


def test_silent_judge_holds_no_flag_open(meaning: TextMatcher) -> None:
    monitor = monitor_of(meaning)
    _, views = play(monitor, TALK, 20)
    first, *never = [view for view in views if view.unit.kind is UnitKind.ROBOT_TURN]
    assert never
    assert monitor.take_judgement(error(first))
    flags, _ = play(monitor, LATER, 80, from_s=25)
    assert closed(flags) == [3]


def test_end_of_input_awaits_the_judge_unless_disabled(meaning: TextMatcher) -> None:
    endings = []
    for awaits_judge in (True, False):
        monitor = monitor_of(meaning)
        _, views = play(monitor, TALK, 14)
        (first, *_) = [view for view in views if view.unit.kind is UnitKind.ROBOT_TURN]
        monitor.take_judgement(error(first))
        endings.append(closed(monitor.end_input(awaits_judge=awaits_judge)))
    assert endings == [[], [3]]
