"""The measures of an online detector, by hand, and on an encounter of the development split."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.engines.sentences import SentenceEncoder
from norm_core.flag import Attribute, Polarity
from norm_core.time import NS_PER_S, s_to_ns
from norm_monitor.cues.table import Table
from norm_monitor.meaning import Concepts, Meanings
from sim_replays.monitoring import Alarm, Session, matched, online, prior, silent, watched
from sim_replays.scenarios.encounter import Basis
from sim_replays.scenarios.library import find, read
from sim_replays.scenarios.truth import TrueEvent, Truth

ATTRIBUTE = Attribute.EMOTIONS


def session(events_s: list[float], alarms_s: list[float], polarity: Polarity = Polarity.ERROR) -> Session:
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
    return Session(truth=truth, alarms=alarms)


def test_one_alarm_finds_one_event_at_most() -> None:
    """Two alarms at one event are one hit and one false alarm; nothing is adjusted."""
    found = online([session([10, 50], [10.4, 10.6])], at_s=1.0)
    assert (found.recall, found.precision, found.false_alarms_per_hour) == (50.0, 50.0, 1.0)
    assert (found.f1["0.5"], found.f1["1"]) == (50.0, 50.0)
    assert found.latency_s["p50"] == pytest.approx(1.4)


def test_as_many_pairs_as_can_be_are_made() -> None:
    """The nearest alarm to each event would leave one event without any."""
    assert len(matched(session([10, 11], [11.4, 10.9]), 1.0)) == 2


def test_polarity_and_attribute_must_agree() -> None:
    assert matched(session([10], [10], Polarity.COMPETENCE), 5.0) == []


@given(st.lists(st.integers(0, 60), max_size=8), st.lists(st.integers(0, 60), max_size=8))
def test_wider_tolerances_never_find_less(events: list[int], alarms: list[int]) -> None:
    one = session([float(at) for at in events], [float(at) for at in alarms])
    found = [len(matched(one, tolerance_s)) for tolerance_s in (0.5, 1.0, 2.0, 5.0)]
    assert found == sorted(found)
    assert found[-1] <= min(len(events), len(alarms))
    assert len({alarm for _, alarm in matched(one, 5.0)}) == found[-1]


def test_silence_scores_0_and_the_monitor_more() -> None:
    meaning, table = Meanings(SentenceEncoder(), Concepts.shipped()), Table.shipped()
    encounter = read(find("kiosk_directions"))
    found = watched(encounter, meaning, table)
    assert found == watched(encounter, meaning, table)
    assert online([found]).f1["5"] > 0
    nothing = online(silent([found]))
    assert (nothing.f1["5"], nothing.recall, nothing.alarms) == (0.0, 0.0, 0)
    assert prior([found], 1) == prior([found], 1)
