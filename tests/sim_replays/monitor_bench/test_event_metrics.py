"""The measures of an online detector, by hand, and on an encounter of the development split."""

from dataclasses import replace

import pytest

from calibration.unit_examples import LabelledRecords, labelled_units
from norm_core.records.flag import Attribute, Polarity
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.encounters.encounter import Basis
from norm_monitor.encounters.library import TrueEvent, Truth, find, read
from sim_replays.monitor_bench.event_metrics import (
    Alarm,
    EventSession,
    draw_prior_alarms,
    match_alarms,
    score_encounters,
    score_online,
)
from sim_replays.monitor_bench.script_driver import (
    make_script_records,
    monitor_script,
)

ATTRIBUTE = Attribute.EMOTIONS


def session(events_s: list[float], alarms_s: list[float], polarity: Polarity = Polarity.ERROR) -> EventSession:
    """Events and alarms of one attribute in an hour; an alarm is known a second after it began."""
    events = tuple(
        TrueEvent(
            polarity=Polarity.ERROR,
            attributes=(ATTRIBUTE,),
            onset_ns=s_to_ns(at_s),
            offset_ns=s_to_ns(at_s + 1),
            basis=Basis.TIMING,
            evidence=(),
            rationale="",
        )
        for at_s in events_s
    )
    alarms = tuple(
        Alarm(polarity=polarity, attributes=(ATTRIBUTE,), onset_ns=s_to_ns(at_s), known_ns=s_to_ns(at_s + 1))
        for at_s in alarms_s
    )
    truth = Truth(encounter_id="e", language="en", seed=0, start_ns=0, end_ns=3600 * NS_PER_S, turns=(), events=events)
    return EventSession(truth=truth, alarms=alarms)


def test_one_alarm_finds_one_event_at_most() -> None:
    """Two alarms at one event are one hit and one false alarm; nothing is adjusted."""
    found = score_online([session([10, 50], [10.4, 10.6])], at_s=1.0)
    assert (found.recall, found.precision, found.false_alarms_per_hour) == (50.0, 50.0, 1.0)
    assert (found.f1, found.false) == (50.0, 1)
    assert found.latency_s["p50"] == pytest.approx(1.4)


def test_polarity_and_attribute_must_agree() -> None:
    assert match_alarms(session([10], [10], Polarity.COMPETENCE), 5.0) == []


def test_what_attributes_cost_is_shown() -> None:
    """Of two events, one flag shares the attribute and the other does not; a third flag matches nothing in time."""
    one = session([10, 50], [10, 50, 90])
    named = (Attribute.EMOTIONS, Attribute.ENGAGEMENT), (Attribute.ENGAGEMENT,), (Attribute.EMOTIONS,)
    alarms = tuple(replace(alarm, attributes=of) for alarm, of in zip(one.alarms, named, strict=True))
    found = score_online([replace(one, alarms=alarms)])
    assert (found.f1, found.any_attribute) == (40.0, 80.0)


def test_errors_flagged_in_harmless_talk_are_counted() -> None:
    """A talk of an hour with no labelled error is harmless, whatever competences it has."""
    scores = score_encounters([session([10], [10, 20]), session([], [30, 40, 50])])
    assert (scores.errors.events, scores.errors.flags, scores.errors.false) == (1, 5, 4)
    assert (scores.harmless.encounters, scores.harmless.minutes, scores.harmless.false_errors) == (1, 60.0, 3)
    assert scores.competences.flags == 0


def test_false_errors_an_hour_have_an_interval_over_encounters() -> None:
    """Of two talks of an hour, a draw takes the same one twice or both: 0, 2 or 4 false errors an hour."""
    found = score_encounters([session([], [10, 20, 30, 40]), session([], []), session([50], [60])]).harmless
    assert (found.encounters, found.false_errors, found.false_errors_per_hour) == (2, 4, 2.0)
    assert found.false_errors_per_hour_interval == (0.0, 4.0)
    competences_alone = session([], [10], Polarity.COMPETENCE)
    assert score_encounters([competences_alone]).harmless.false_errors_per_hour_interval is None


def test_one_talk_has_no_interval() -> None:
    """A bootstrap over talks takes two of them: of one, every draw is alike."""
    half = session([10, 50], [10.4, 90])
    alone, twice = score_online([half]), score_online([half, session([10], [])])
    assert (alone.f1, alone.f1_interval, set(alone.by_attribute_interval.values())) == (50.0, None, {None})
    assert twice.f1_interval == (0.0, 50.0)


def test_without_harmless_talk_there_is_no_rate() -> None:
    found = score_encounters([session([10], [10])]).harmless
    assert (found.encounters, found.minutes, found.false_errors, found.false_errors_per_hour) == (0, 0.0, 0, 0.0)


def test_distances_reach_the_monitor_beside_a_camera_that_knows_none(meaning: EncoderMatcher) -> None:
    given, truth = make_script_records(read(find("factory_shift")))
    labelled = LabelledRecords(given=tuple(given), sources=("utterances",), truth=truth)
    event = next(event for event in truth.events if event.basis is Basis.SIGHT)
    units = labelled_units(0, labelled, meaning, ThresholdTable.shipped())
    near = [one.facts for one in units if one.facts and abs(one.onset_ns - event.onset_ns) < 2 * NS_PER_S]
    assert min(facts["distance_m"] for facts in near) < 0.5
    assert all("faces" in facts for facts in near)


def test_silence_scores_0_and_the_monitor_more(meaning: EncoderMatcher) -> None:
    table = ThresholdTable.shipped()
    encounter = read(find("kiosk_directions"))
    found = monitor_script(encounter, meaning, table)
    assert found == monitor_script(encounter, meaning, table)
    assert score_online([found], at_s=5.0).f1 > 0
    nothing = score_online([replace(found, alarms=())])
    assert (nothing.f1, nothing.recall, nothing.flags) == (0.0, 0.0, 0)
    assert draw_prior_alarms([found], 1) == draw_prior_alarms([found], 1)
