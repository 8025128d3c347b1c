"""The monitor as a whole: the same input gives the same flags, whatever order and pace it comes in."""

import sys
from inspect import signature
from typing import Any

import pytest

from norm_core.records.flag import Attribute, Evidence, FlagState, Polarity, SocialFlag
from norm_core.records.outcome import Outcome
from norm_core.records.speech import Utterance, make_silence_mark
from norm_core.runtime.time import ReplayClock
from norm_monitor.assessment.fusion_config import FusionConfig
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.assessment.unit import Unit, UnitJudgement, UnitKind
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.context.memory import MemoryConfig
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.windows.cutter import Entry, WindowConfig
from tests.norm_monitor.encounter_talk import ALONE, Watched, at, robot, seen, user, when_given, with_silence


def make_encounter(from_s: float = 0.0) -> list[Entry]:
    return [
        *user(from_s + 1, from_s + 2, "Good morning!"),
        *robot(from_s + 2.5, from_s + 5, "Good morning, I'm Pepper, the reception robot."),
        *user(from_s + 6, from_s + 8, "Where can I buy a ticket?"),
        *robot(from_s + 13, from_s + 16, "You can buy it at the counter."),
        *user(from_s + 14, from_s + 17, "Excuse me, I asked about the ticket."),
        *robot(from_s + 20, from_s + 23, "You can buy it at the counter."),
        *user(from_s + 24, from_s + 25, "Thank you. Goodbye!"),
        *robot(from_s + 25.5, from_s + 27, "Goodbye, have a nice day."),
    ]


ENCOUNTER: list[Entry] = [*make_encounter(), *seen(0, 28)]


def list_decisions(flags: list[SocialFlag]) -> list[tuple[object, ...]]:
    """What parity compares: all but when it was decided."""
    return [
        (f.event_id, f.state, f.attributes, f.severity, f.onset_ns, f.offset_ns, f.evidence, f.rationale,
         f.provenance.window_digest)
        for f in flags
    ]  # fmt: skip


def feed_monitor(meaning: EncoderMatcher, entries: list[Entry]) -> list[SocialFlag]:
    """The entries in this order, and then one mark of silence far beyond."""
    monitor = Monitor(ALONE, ThresholdTable.shipped(), meaning, ReplayClock(at(0)))
    flags = [flag for entry in [*entries, make_silence_mark(at(60), "audio")] for flag in monitor.take(entry)]
    return flags + monitor.end_input()


def test_pace_and_order_change_no_flag(meaning: EncoderMatcher) -> None:
    slowly = list_decisions(Watched(meaning, weighed=True).watch(ENCOUNTER, until_s=60))
    assert len({flag[0] for flag in slowly}) >= 2
    by_time = sorted(ENCOUNTER, key=when_given)
    assert list_decisions(feed_monitor(meaning, by_time)) == slowly
    others_first = sorted(by_time, key=lambda entry: isinstance(entry, Utterance))
    assert list_decisions(feed_monitor(meaning, others_first)) == slowly


def test_a_flag_opened_after_a_change_cites_its_window_and_the_new_hash(meaning: EncoderMatcher) -> None:
    """Its unit was measured before, when it was muted."""
    every = tuple(one.value for one in Attribute)
    muted = ALONE.model_copy(update={"fusion": ALONE.fusion.model_copy(update={"muted": every})})
    monitor = Monitor(muted, ThresholdTable.shipped(), meaning, ReplayClock(at(40)))
    assert not [flag for _, entry in with_silence(ENCOUNTER, until_s=40) for flag in monitor.take(entry)]
    opened = monitor.reconfigure(ALONE)
    assert opened
    assert {flag.state for flag in opened} == {FlagState.OPENED}
    cited = {flag.provenance.window_digest for flag in opened}
    assert "" not in cited
    assert cited <= {window.sha256 for window in monitor.closed_windows()}
    closed = monitor.end_input()
    unchanged = Watched(meaning, weighed=True).watch(ENCOUNTER, until_s=40)
    assert {f.event_id for f in closed if f.state is FlagState.CLOSED} >= {f.event_id for f in opened}
    assert {f.provenance.config_sha256 for f in (*opened, *closed)} == {f.provenance.config_sha256 for f in unchanged}


@pytest.mark.parametrize(
    "changed",
    [
        {"fusion": FusionConfig(open_s=10.0)},
        {"memory": MemoryConfig(max_facts=3)},
        {"windows": WindowConfig(sources=("utterances",), length_s=20.0)},
        {"table": ThresholdTable(version="another", cues=ThresholdTable.shipped().cues)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_the_hash_in_a_flag_covers_all_that_decided_it(meaning: EncoderMatcher, changed: dict[str, Any]) -> None:
    """But not how long a window waits: a replay waits for ever, and decides the same."""

    def hash_by(table: ThresholdTable | None = None, **parts: Any) -> str:
        monitor = Monitor(
            ALONE.model_copy(update=parts), table or ThresholdTable.shipped(), meaning, ReplayClock(at(0))
        )
        flags = [flag for _, entry in with_silence([*ENCOUNTER], 60.0) for flag in monitor.take(entry)]
        (found,) = {flag.provenance.config_sha256 for flag in flags}
        return found

    assert hash_by() == hash_by(windows=WindowConfig(sources=("utterances",), lateness_s=3.0))
    assert hash_by(**changed) != hash_by()


def test_jump_back_starts_a_new_timeline(meaning: EncoderMatcher) -> None:
    """What was flagged and asked of the judge before holds nothing back that comes after."""
    judged = MonitorConfig.for_replay(("utterances",), calls_per_hour=600.0)
    monitor = Monitor(judged, ThresholdTable.shipped(), meaning, ReplayClock(at(0)))

    def watched(from_s: float) -> tuple[set[tuple[str, float]], list[int]]:
        entries = [entry for _, entry in with_silence(make_encounter(from_s), from_s + 60.0)]
        flags = [flag for entry in entries for flag in monitor.take(entry)]
        asked = [view.unit.onset_ns - at(from_s) for view in monitor.units_to_judge()]
        return {(flag.cue_id, flag.onset_ns - at(from_s)) for flag in flags if flag.onset_ns < at(from_s + 60)}, asked

    first, set_back = watched(5_000.0), watched(0.0)
    assert len(first[0]) > 1
    assert len(first[1]) > 3
    assert set_back == first


def test_stopped_camera_causes_no_endless_windows(meaning: EncoderMatcher) -> None:
    watched = Watched(meaning)
    watched.watch(seen(0, 5, away_from_s=4), robot(1, 20, "And now the history of this house."), until_s=40)
    (windows,) = (counter.count for counter in watched.monitor.counters if counter.name == "windows")
    assert windows < 30


QUESTIONS: list[Entry] = [*user(60, 62, "Where can I buy a ticket?"), *user(75, 77, "Are you even listening?")]


@pytest.mark.parametrize("late_s", [0.0, 28.0])
def test_late_stop_ends_the_robot_turn(meaning: EncoderMatcher, late_s: float) -> None:
    """Its window has closed by then; the questions after it stay unanswered all the same."""
    begun, stop = robot(20, 25, "Let me tell you a long story about this old hotel.")
    before, after = user(17, 18.5, "Hello there, good morning."), with_silence(QUESTIONS, until_s=100)
    given = [(at(20), begun), (at(25 + late_s), stop), *with_silence(before, until_s=19), *after]
    marks: list[tuple[int, Entry]] = [(at(second), make_silence_mark(at(second), "audio")) for second in range(20, 60)]
    marks += [(one.stamp_ns, one) for one in seen(10, 80)]
    watched = Watched(meaning)
    flags = [
        flag for _, one in sorted([*given, *marks], key=lambda pair: pair[0]) for flag in watched.monitor.take(one)
    ]
    unanswered = {flag.onset_ns for flag in flags if flag.cue_id == "no_response"}
    assert unanswered == {at(62), at(77)}


def test_no_flag_quotes_forgotten_talk(meaning: EncoderMatcher) -> None:
    watched = Watched(meaning)
    values = [one for name, module in sys.modules.items() if "norm_monitor." in name for one in vars(module).values()]
    caches = [one for one in values if hasattr(one, "cache_info") and "text" in signature(one).parameters]
    for cache in caches:  # of other tests in this process
        cache.cache_clear()
    asked, late = user(0, 2, "Where can I buy a ticket?"), robot(8, 10, "You can buy it at the counter.")
    entries = [entry for _, entry in with_silence([*asked, *late], until_s=60)]
    before = entries.index(next(entry for entry in entries if when_given(entry) > at(14)))
    for entry in entries[:before]:
        watched.monitor.take(entry)
    assert {flag.state for flag in watched.monitor.close_flags()} == {FlagState.CLOSED}
    watched.monitor.forget()
    assert {cache.cache_info().currsize for cache in caches} == {0}
    silence = Unit(kind=UnitKind.SILENCE, unit_id="silence:u0@2", onset_ns=at(2), offset_ns=at(8))
    late_answer = UnitJudgement(
        unit=silence, outcome=Outcome.ANSWERED, attributes=(Attribute.ENGAGEMENT,), correction="Answer.",
        probability={Polarity.ERROR: 0.99, Polarity.COMPETENCE: 0.0}, rationale="Where can I buy a ticket?",
        evidence=(Evidence(measure="m", value=1, start_ns=silence.onset_ns, end_ns=silence.onset_ns),),
    )  # fmt: skip
    assert watched.monitor.take_judgement(late_answer) == []
    assert [flag for entry in entries[before:] for flag in watched.monitor.take(entry)] == []
    assert watched.monitor.end_input() == []
