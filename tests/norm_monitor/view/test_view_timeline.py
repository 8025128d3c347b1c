"""The timeline behind the view: what it tells, and that it stays bounded."""

import threading
from dataclasses import replace

import pytest

from norm_core.records.flag import FlagState
from norm_core.records.presence import Face, Person, Presence, PresenceState
from norm_core.records.speech import Speaker, Utterance
from norm_core.records.status import Health, MonitorStatus
from norm_core.runtime.time import NS_PER_S
from norm_monitor.session_log.recording import Recording
from norm_monitor.view.timeline import SessionTimeline
from tests.node_records import node_status
from tests.patience import PATIENCE_S

START_NS = 1_000 * NS_PER_S


@pytest.fixture
def timeline() -> SessionTimeline:
    return SessionTimeline("a bag", START_NS)


def said(number: int, text: str = "Hello") -> Utterance:
    at_ns = START_NS + number * NS_PER_S
    return Utterance(
        stamp_ns=at_ns,
        utterance_id=f"u{number}",
        speaker=Speaker.USER,
        text=text,
        start_ns=at_ns,
        end_ns=at_ns + NS_PER_S // 2,
    )


def status(second: int, health: Health = Health.OK, *reasons: str) -> MonitorStatus:
    return node_status(START_NS + second * NS_PER_S, health=health, reasons=reasons)


def seen(tenths: int, source: str, **there: tuple[Face | Person, ...]) -> Presence:
    at_ns = START_NS + tenths * NS_PER_S // 10
    return Presence(stamp_ns=at_ns, source_topic=source, state=PresenceState.PRESENT, **there)  # type: ignore[arg-type]


def test_changes_hold_only_what_changed(timeline: SessionTimeline) -> None:
    timeline.take(said(1), START_NS)
    first = timeline.changes()
    timeline.take(said(2), START_NS)
    assert [item["id"] for item in first["speech"]] == ["u1"]
    assert [item["id"] for item in timeline.changes(first["version"])["speech"]] == ["u2"]


def test_a_flag_keeps_when_it_was_raised_and_its_states(timeline: SessionTimeline, session: Recording) -> None:
    flag = replace(session.flags[0], onset_ns=START_NS, offset_ns=START_NS)
    for second, state in ((3, FlagState.OPENED), (4, FlagState.UPDATED), (9, FlagState.WITHDRAWN)):
        timeline.take(replace(flag, state=state), START_NS + second * NS_PER_S)
    (item,) = timeline.changes()["flags"]
    assert (item["known"], item["state"]) == (3000, "withdrawn")
    assert [(state["at"], state["state"]) for state in item["history"]] == [
        (3000, "opened"),
        (4000, "updated"),
        (9000, "withdrawn"),
    ]


def test_health_items_begin_where_health_changes(timeline: SessionTimeline) -> None:
    deaf = "/audio has no publisher; check the name with ./tactful doctor"
    for second, report in enumerate([(Health.OK,), (Health.OK,), (Health.STALE, deaf), (Health.STALE, deaf)]):
        timeline.take(status(second, *report), START_NS + second * NS_PER_S)  # type: ignore[arg-type]
    health = timeline.changes()["health"]
    assert [(item["start"], item["health"], item["reasons"]) for item in health] == [
        (0, "ok", []),
        (2000, "stale", [deaf]),
    ]


def test_two_sources_of_presence_make_one_stretch(timeline: SessionTimeline) -> None:
    face = Face(left_ratio=0, top_ratio=0, width_ratio=0.1, height_ratio=0.1, confidence=1)
    for tenths in range(0, 40, 2):
        timeline.take(seen(tenths, "/camera", faces=(face,)), START_NS)
        timeline.take(seen(tenths + 1, "/humans", persons=(Person(person_id="u"),)), START_NS)
    assert [(item["start"], item["end"], item["people"]) for item in timeline.changes()["presence"]] == [(0, 3900, 1)]


def test_a_silent_source_of_presence_no_longer_counts(timeline: SessionTimeline) -> None:
    timeline.take(seen(2, "/humans", persons=(Person(person_id="u"),)), START_NS)
    for second in range(1, 9):
        timeline.take(seen(10 * second, "/camera"), START_NS)
    stretches = timeline.changes()["presence"]
    assert [(item["start"], item["end"], item["people"]) for item in stretches] == [(200, 200, 1), (3000, 8000, 0)]


def test_the_oldest_items_are_dropped_and_counted() -> None:
    timeline = SessionTimeline("a long bag", START_NS, most=3)
    for number in range(10):
        timeline.take(said(number), START_NS)
    changes = timeline.changes()
    assert [item["id"] for item in changes["speech"]] == ["u7", "u8", "u9"]
    assert changes["dropped"] == 7


def test_an_item_of_the_past_moves_the_beginning(session: Recording) -> None:
    timeline = SessionTimeline("a graph", START_NS + 30 * NS_PER_S, keep_s=3600, past_s=20)
    assert timeline.changes()["from"] == 20_000
    timeline.take_past(said(15))
    timeline.take_past(said(5))  # longer ago than there is room
    changes = timeline.changes()
    assert ([item["id"] for item in changes["speech"]], changes["from"]) == (["u15"], 5_000)


def test_a_change_wakes_a_waiting_viewer(timeline: SessionTimeline) -> None:
    item_ids: list[list[str]] = []
    waiting = threading.Thread(
        target=lambda: item_ids.append([item["id"] for item in timeline.changes(0, PATIENCE_S)["speech"]])
    )
    waiting.start()
    timeline.take(said(1), START_NS)
    waiting.join(PATIENCE_S)
    assert item_ids == [["u1"]]


def test_closing_a_timeline_releases_a_waiting_viewer(timeline: SessionTimeline) -> None:
    completed: list[bool] = []
    waiting = threading.Thread(target=lambda: completed.append(timeline.changes(9, PATIENCE_S)["complete"]))
    waiting.start()
    timeline.close()
    waiting.join(PATIENCE_S)
    assert completed == [False]
