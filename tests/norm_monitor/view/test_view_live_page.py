"""The page of a running graph in a real browser: what streams in, pausing, and acting on it."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from norm_core.records.flag import FlagState, SocialFlag
from norm_core.runtime.time import NS_PER_S
from norm_monitor.view.timeline import SessionTimeline
from tests.norm_monitor.view.browser import Browser, inaccessible, needs_axe, needs_chromium, text
from tests.norm_monitor.view.test_view_server import Controls
from tests.norm_monitor.view.view_pages import REMEDY, page_of, status
from tests.study_session import START_NS, records

pytestmark = needs_chromium

SETTINGS = {"sensitivity": "balanced", "muted": ["monologue"], "log": True}
NETWORK = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
JPEG = cv2.imencode(".jpg", np.full((120, 160, 3), 120, np.uint8))[1].tobytes()
FLAG: SocialFlag = next(record for _, record in records() if isinstance(record, SocialFlag))


class Session:
    """A timeline of a running graph, filled with what happened in the last ten minutes, and its page."""

    def __init__(self) -> None:
        self.shift_ns = time.time_ns() - START_NS - 600 * NS_PER_S
        self.timeline = SessionTimeline("/tactful", START_NS + self.shift_ns, keep_s=3600)
        self.controls = Controls()
        for known_ns, record in records():
            self.take(record, known_ns)
        self.take(status(599, REMEDY), START_NS + 599 * NS_PER_S)
        self.timeline.set_state("settings", SETTINGS)

    def take(self, record: Any, known_ns: int) -> None:
        self.timeline.take(record, known_ns + self.shift_ns, shift_ns=self.shift_ns)

    def flag(self, name: str, **changes: Any) -> None:
        """Raise a flag now."""
        now_ns = time.time_ns()
        flag = replace(
            FLAG, event_id=name, state=FlagState.OPENED, onset_ns=now_ns - NS_PER_S, offset_ns=now_ns, **changes
        )
        self.timeline.take(flag, now_ns)


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def url(browser: Browser, session: Session) -> Iterator[str]:
    with page_of(browser, session.timeline, lambda stamp_ns: None, controls=session.controls, is_live=True) as address:
        yield address


def until_row(browser: Browser, name: str) -> None:
    """Scroll to the end of the list until a row is there."""
    scroll = "document.getElementById('list').scrollTop = 1e9"
    browser.until(f"({scroll}, document.getElementById('row-{name}') !== null)")


def click(browser: Browser, selector: str) -> None:
    browser.until(f"document.querySelector({json.dumps(selector)}) !== null")
    browser.run(f"document.querySelector({json.dumps(selector)}).click()")


def test_a_paused_moment_has_its_own_picture(browser: Browser, session: Session) -> None:
    taken_ns = session.timeline.start_ns + 590 * NS_PER_S + NS_PER_S // 4
    still_at = lambda stamp_ns: JPEG if stamp_ns >= taken_ns else None  # noqa: E731
    with page_of(browser, session.timeline, still_at, controls=session.controls, is_live=True) as address:
        browser.open(address)
        live = "document.getElementById('still').alt"
        now = browser.until(f"!document.getElementById('still').hidden && {live}")
        cursor = "document.getElementById('cursor')"
        browser.run(f"({cursor}.value = 590500, {cursor}.dispatchEvent(new Event('input')))")
        browser.until(f"document.getElementById('no-still').hidden && {live} !== {json.dumps(now)}")


def test_a_pause_holds_the_moment_and_loses_nothing(shown: Browser, session: Session) -> None:
    shown.key(" ")
    paused = text(shown, "#at").partition(" · ")[0]
    session.flag("new", rationale="It came late.")
    shown.until("document.getElementById('live').innerText === 'Live · 1 new'")
    assert text(shown, "#at").startswith(paused)
    assert "It came late." not in text(shown, "#raised")
    until_row(shown, "new")
    shown.key("l")
    shown.until("document.getElementById('raised').innerText.includes('It came late.')")
    assert text(shown, "#live") == "Live"


def test_a_moment_without_data_is_not_called_live(shown: Browser, session: Session) -> None:
    session.timeline.set_state("quiet", {"last": None})
    shown.until("document.getElementById('at').innerText.endsWith('no data yet')")
    assert text(shown, "#health-at") == "no data yet"
    assert text(shown, "#live") == "Latest"
    session.timeline.set_state("quiet", {"last": 590_000})
    shown.until("document.getElementById('at').innerText.includes('no data since')")
    since = text(shown, "#at").partition("no data since ")[2]
    assert text(shown, "#health-at") == f"no data since {since}"
    session.timeline.set_state("quiet", None)
    shown.until("document.getElementById('at').innerText.endsWith('live')")
    assert text(shown, "#live") == "Live"


def test_a_page_whose_server_was_killed_is_marked_and_stays_readable(
    browser: Browser, session: Session, tmp_path: Path
) -> None:
    browser.size(1440, 900)
    with page_of(browser, session.timeline, lambda stamp_ns: JPEG, controls=session.controls, is_live=True) as url:
        browser.open(url)
        browser.until("document.getElementById('still').naturalWidth > 0")
        browser.send("Network.emulateNetworkConditions", offline=True, **NETWORK)
        session.flag("missed")
        browser.until("document.documentElement.classList.contains('stopped')")
        assert text(browser, "#at").endswith("stopped")
        assert text(browser, "#live") == "Latest"
        assert text(browser, "#still-caption").startswith("Stopped: the last picture, of ")
        assert "does not answer since" in text(browser, "#notes")
        browser.key("j")
        assert text(browser, "#details .name") != ""
        browser.send("Network.emulateNetworkConditions", offline=False, **NETWORK)
        session.flag("back")
        browser.key("l")
        browser.until("document.getElementById('at').innerText.endsWith('live')")
        browser.until("document.getElementById('still-caption').innerText === ''")


def test_the_list_follows_at_its_end_and_otherwise_stays(shown: Browser, session: Session) -> None:
    for number in range(30):
        session.flag(f"many-{number}")
    gap = "(list => list.scrollHeight - list.clientHeight - list.scrollTop)(document.getElementById('list'))"
    shown.until("document.getElementById('row-many-29') !== null")  # nobody scrolled
    assert shown.run(gap) < 2
    shown.run("document.getElementById('list').scrollTop -= 300")
    top = "document.querySelector('#list').scrollTop"
    read = shown.run(top)
    row = (
        "(y => [...document.querySelectorAll('#rows [role=option]')]"
        ".find((row) => row.getBoundingClientRect().bottom > y + 5).id)"
        "(document.getElementById('list').getBoundingClientRect().top)"
    )
    reading, count = shown.run(row), int(text(shown, "#count").split()[0])
    session.flag("later")
    shown.until(f"document.getElementById('count').innerText === '{count + 1} in all'")
    assert shown.run(top) == read
    early_ns = START_NS + session.shift_ns + NS_PER_S
    early = replace(FLAG, event_id="early", state=FlagState.CLOSED, onset_ns=early_ns, offset_ns=early_ns)
    session.timeline.take(early, time.time_ns())  # a row above
    shown.until(f"{top} > {read}")
    assert shown.run(row) == reading
    shown.key("l")
    assert shown.run(gap) < 2


def test_a_flag_shows_the_thresholds_when_raised_and_now(shown: Browser, session: Session) -> None:
    fact = replace(FLAG.evidence[0], weight=2.0)
    session.flag("new", evidence=(fact,), base_log_odds=0.0, threshold=0.5)
    until_row(shown, "new")
    shown.run("document.getElementById('row-new').click()")
    assert text(shown, ".addition tfoot tr:last-child th") == "Threshold of competences"
    session.flag("new", evidence=(fact,), base_log_odds=0.0, threshold=0.8)
    shown.until("document.querySelectorAll('.addition tfoot tr').length === 3")
    thresholds = text(shown, ".addition tfoot")
    assert "when it was raised" in thresholds
    assert "0.5" in thresholds
    assert "at its last change" in thresholds
    assert "0.8" in thresholds


def test_a_verdict_and_settings_reach_the_monitor(shown: Browser, session: Session) -> None:
    shown.key("j")
    click(shown, "[data-verdict=accept]")
    shown.until("document.activeElement.name === 'name'")
    assert session.controls.asked == []  # nobody is a coder by default
    shown.run("document.activeElement.value = 'Ana'; document.activeElement.form.requestSubmit()")
    shown.until("document.getElementById('rows').innerText.includes('accepted')")
    assert "accepted by Ana" in text(shown, "#details")
    assert text(shown, "[name=name]") == ""
    click(shown, "[data-level=keen]")
    shown.until("document.getElementById('saved').innerText === 'Done.'")
    click(shown, ".mutes button")
    shown.until("document.getElementById('saved').innerText === 'Done.'")
    assert session.controls.asked == ["accept", "keen", (FLAG.cue_id, True)]


def test_an_outage_is_marked_from_when_to_when(shown: Browser, session: Session) -> None:
    now_ns = time.time_ns()
    session.timeline.mark_outage(now_ns - 200 * NS_PER_S, now_ns - 100 * NS_PER_S)
    shown.until("document.getElementById('health').innerText.includes('No node was heard from')")
    box = shown.run("(b => [b.left, b.top, b.width])(document.getElementById('canvas').getBoundingClientRect())")
    shown.point(box[0] + box[2] * 0.75, box[1] + 60)
    assert "No node was heard from" in text(shown, "#hover")
    shown.point(box[0] + box[2] * 0.5, box[1] + 60)
    assert shown.run("document.getElementById('hover').hidden")


def test_without_a_study_log_there_is_no_verdict(shown: Browser, session: Session) -> None:
    session.timeline.set_state("settings", {**SETTINGS, "log": False})
    shown.key("j")
    shown.until("document.getElementById('details').innerText.includes('keeps no study log')")
    assert shown.run("document.querySelector('[data-verdict]')") is None


@needs_axe
@pytest.mark.parametrize("state", ["light", "dark", "phone"])
def test_axe_finds_nothing_inaccessible(shown: Browser, session: Session, state: str) -> None:
    session.flag("new")
    shown.until("document.querySelector('.raised') !== null")
    if state == "dark":
        shown.run("document.getElementById('theme').click()")
    if state == "phone":
        shown.size(390, 844, 2)
    assert inaccessible(shown) == []
    shown.key("j")
    assert inaccessible(shown) == []
    assert shown.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
