"""The page of a running graph in a real browser: what streams in, pausing, and acting on it."""

import importlib.util
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from norm_core.records.flag import FlagState, SocialFlag
from norm_core.records.status import Health
from norm_core.runtime.time import NS_PER_S
from sim_replays.examples.study_session import START_NS, records
from study_desk.view.timeline import SessionTimeline
from study_desk.view.view_server import ViewServer
from tests.patience import PATIENCE_S
from tests.study_desk.browser import CHROMIUM, Browser
from tests.study_desk.test_view_page import REMEDY, faults, status, text
from tests.study_desk.test_view_server import Controls

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed (Debian, Ubuntu: apt install chromium)"
)

SETTINGS = {"sensitivity": "balanced", "muted": ["monologue"], "log": True, "prompts": True}
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


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def url(browser: Browser, session: Session) -> Iterator[str]:
    server = ViewServer(session.timeline, lambda stamp_ns: None, controls=session.controls, is_live=True)
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield server.url
    browser.send("Page.navigate", url="about:blank")  # a page that stays would go on asking
    server.close()
    thread.join(PATIENCE_S)


@pytest.fixture
def shown(browser: Browser, url: str) -> Browser:
    browser.size(1440, 900)
    browser.events.clear()
    browser.open(url)
    return browser


def until_row(browser: Browser, name: str) -> None:
    """Scroll to the end of the list until a row is there."""
    scroll = "document.getElementById('list').scrollTop = 1e9"
    browser.until(f"({scroll}, document.getElementById('row-{name}') !== null)")


def click(browser: Browser, selector: str) -> None:
    browser.until(f"document.querySelector({json.dumps(selector)}) !== null")
    browser.run(f"document.querySelector({json.dumps(selector)}).click()")


def test_a_flag_is_shown_at_once_with_what_it_says(shown: Browser, session: Session) -> None:
    session.flag("new", rationale="It came late.")
    shown.until("document.getElementById('raised').innerText.includes('It came late.')")
    assert text(shown, "#at").endswith("live")
    assert REMEDY in text(shown, "#health")
    assert faults(shown) == []


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


def test_the_scrubber_goes_back_ten_minutes(shown: Browser) -> None:
    span = "Number(document.getElementById('cursor').max) - Number(document.getElementById('cursor').min)"
    assert 599_000 <= shown.run(span) <= 600_001
    shown.run("(c => { c.value = c.min; c.dispatchEvent(new Event('input')); })(document.getElementById('cursor'))")
    shown.until("document.getElementById('at').innerText.includes('10:0')")
    assert text(shown, "#play") == "Play"


def test_two_viewers_see_the_same(shown: Browser, session: Session, url: str, tmp_path: Path) -> None:
    with Browser(tmp_path / "other") as other:
        other.open(url)
        session.flag("new")
        for viewer in (shown, other):
            until_row(viewer, "new")


def test_a_browser_that_slept_catches_up(shown: Browser, session: Session) -> None:
    network = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    shown.send("Network.emulateNetworkConditions", offline=True, **network)
    session.flag("first")
    shown.until("document.getElementById('notes').innerText.includes('does not answer')")
    session.flag("second")
    shown.send("Network.emulateNetworkConditions", offline=False, **network)
    until_row(shown, "second")
    until_row(shown, "first")
    assert text(shown, "#notes") == ""


def test_three_thousand_flags_are_listed(shown: Browser, session: Session) -> None:
    before = int(text(shown, "#count").split()[0])
    for number in range(3_000):
        session.flag(f"many-{number}")
    shown.until(f"document.getElementById('count').innerText === '{before + 3_000} in all'")
    session.flag("last")
    until_row(shown, "last")
    assert faults(shown) == []


def test_what_is_typed_stays_while_news_come_in(shown: Browser, session: Session) -> None:
    shown.key("j")
    click(shown, "[data-verdict=relabel]")
    shown.run("document.querySelector('[name=note]').value = 'half a note'")
    session.flag("new")
    shown.until("document.getElementById('live').innerText === 'Live · 1 new'")
    assert shown.run("document.querySelector('[name=note]')?.value") == "half a note"


def test_a_verdict_and_settings_reach_the_monitor(shown: Browser, session: Session) -> None:
    shown.key("j")
    click(shown, "[data-verdict=accept]")
    shown.until("document.getElementById('rows').innerText.includes('accepted')")
    click(shown, "[data-level=keen]")
    shown.until("document.getElementById('saved').innerText === 'Done.'")
    click(shown, ".mutes button")
    shown.until("document.getElementById('saved').innerText === 'Done.'")
    assert session.controls.asked == ["accept", "keen", (FLAG.cue_id, True)]


def test_the_prompt_of_a_judged_flag_is_shown(shown: Browser, session: Session) -> None:
    judged = replace(FLAG.provenance, prompt_digest="a" * 64)
    session.flag("judged", provenance=judged)
    until_row(shown, "judged")
    shown.run("document.getElementById('row-judged').click()")
    shown.run("[...document.querySelectorAll('#details button')].find((b) => b.innerText.includes('asked')).click()")
    shown.until("document.querySelector('.prompt')?.innerText === 'Is it rude?'")


def test_what_is_not_done_says_why(shown: Browser, session: Session) -> None:
    session.controls.problem = "monitor: the disk is full"
    click(shown, "[data-level=quiet]")
    shown.until("document.getElementById('saved').innerText === 'Not done: monitor: the disk is full'")


def test_without_a_study_log_there_is_no_verdict(shown: Browser, session: Session) -> None:
    session.timeline.set_state("settings", {**SETTINGS, "log": False})
    shown.key("j")
    shown.until("document.getElementById('details').innerText.includes('keeps no study log')")
    assert shown.run("document.querySelector('[data-verdict]')") is None


def test_a_silent_node_is_told(shown: Browser, session: Session) -> None:
    stale = replace(status(600, "no heartbeat for 5 s"), health=Health.STALE)
    session.timeline.take(stale, time.time_ns())
    shown.until("document.getElementById('health').innerText.includes('no heartbeat for 5 s')")


AXE = "axe_playwright_python"


@pytest.mark.skipif(importlib.util.find_spec(AXE) is None, reason="axe is not installed (it is in the test group)")
@pytest.mark.parametrize("state", ["light", "dark", "phone"])
def test_axe_finds_nothing_inaccessible(shown: Browser, session: Session, state: str) -> None:
    spec = importlib.util.find_spec(AXE)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    script = Path(spec.submodule_search_locations[0], "axe.min.js").read_text(encoding="utf-8")
    session.flag("new")
    shown.until("document.querySelector('.raised') !== null")
    if state == "dark":
        shown.run("document.getElementById('theme').click()")
    if state == "phone":
        shown.size(390, 844, 2)
    shown.send("Runtime.evaluate", expression=script)
    violations = "axe.run(document).then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))"
    assert shown.run(violations) == []
    shown.key("j")
    assert shown.run(violations) == []
    assert shown.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
