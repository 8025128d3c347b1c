"""The view in a real browser: the replay of a session, with its reasons."""

import importlib.util
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from norm_core.records.decision import Decision
from norm_core.records.flag import Evidence, FlagState, SocialFlag
from norm_core.records.speech import Utterance
from norm_core.records.status import Health, MonitorStatus, NodeState
from norm_core.runtime.time import NS_PER_S
from sim_replays.examples.study_session import START_NS, records
from study_desk.view.timeline import SessionTimeline
from study_desk.view.view_server import ViewServer
from tests.patience import PATIENCE_S
from tests.study_desk.browser import CHROMIUM, Browser

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed (Debian, Ubuntu: apt install chromium)"
)

REMEDY = "ears: topic /audio has no publisher; check the name with ./tactful doctor"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def timeline() -> SessionTimeline:
    """Return the timeline of the generated session, in which the ears go deaf at 300 s."""
    filled = SessionTimeline("library_s07", START_NS)
    for known_ns, record in records():
        filled.take(record, known_ns)
    filled.take(status(0), START_NS)
    filled.take(status(300, REMEDY), START_NS + 300 * NS_PER_S)
    return filled


@pytest.fixture
def url(browser: Browser, timeline: SessionTimeline) -> Iterator[str]:
    server = ViewServer(timeline, None)
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


def status(second: int, *reasons: str) -> MonitorStatus:
    return MonitorStatus(
        stamp_ns=START_NS + second * NS_PER_S,
        node="/tactful/ears",
        state=NodeState.ACTIVE,
        health=Health.STALE if reasons else Health.OK,
        reasons=reasons,
        software_version="1",
        config_sha256="",
        instance_id="",
        started_ns=START_NS,
    )


def of(kind: type[Any]) -> list[Any]:
    """Return the session's records of a kind."""
    return [record for _, record in records() if isinstance(record, kind)]


def text(browser: Browser, selector: str) -> str:
    return str(browser.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))


def scrub(browser: Browser, at_ns: int) -> None:
    """Move the scrubber, as a finger would."""
    browser.run(
        "(() => { const c = document.getElementById('cursor');"
        f"c.value = {(at_ns - START_NS) / 1e6}; c.dispatchEvent(new Event('input')); }})()"
    )


def faults(browser: Browser) -> list[Any]:
    return [
        event["params"]
        for event in browser.events
        if event.get("method") == "Runtime.exceptionThrown"
        or (event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error")
    ]


def test_it_sums_up_the_session_and_asks_only_its_own_server(shown: Browser, url: str) -> None:
    flags = {flag.event_id: flag for flag in of(SocialFlag)}
    errors = sum(flag.polarity == "error" for flag in flags.values())
    assert text(shown, "h1") == "library_s07"
    assert f"{errors} errors, {len(flags) - errors} competences, {len(of(Decision))} decisions" in text(shown, "#meta")
    asked = [e["params"]["request"]["url"] for e in shown.events if e.get("method") == "Network.requestWillBeSent"]
    assert [one for one in asked if not one.startswith((url.split("?", maxsplit=1)[0], "data:", "blob:"))] == []
    assert faults(shown) == []


def test_the_scrubber_shows_who_speaks_and_what_was_raised(shown: Browser) -> None:
    said = next(one for one in of(Utterance) if one.final)
    scrub(shown, said.end_ns - 1)
    assert said.text in text(shown, "#said .speaking")
    flag = of(SocialFlag)[0]
    scrub(shown, flag.decision_ns - NS_PER_S // 10)
    assert flag.rationale not in text(shown, "#raised")
    scrub(shown, flag.decision_ns + NS_PER_S)
    assert flag.rationale in text(shown, "#raised")


def test_health_is_that_of_the_moment_with_its_remedy(shown: Browser) -> None:
    scrub(shown, START_NS + 10 * NS_PER_S)
    assert "/tactful/ears: ok" in text(shown, "#health")
    scrub(shown, START_NS + 301 * NS_PER_S)
    assert REMEDY in text(shown, "#health")
    assert text(shown, "#health-sum") == "1 of 1 nodes need attention"


def test_a_flag_gives_measure_threshold_and_reason(shown: Browser) -> None:
    flag = next(one for one in of(SocialFlag) if one.cue_id == "response_delay")
    scrub(shown, flag.decision_ns + NS_PER_S)
    raised = "[...document.querySelectorAll('.raised')]"
    shown.run(f"{raised}.find((each) => each.innerText.includes({json.dumps(flag.rationale)})).click()")
    fact = flag.evidence[0]
    details = text(shown, "#details")
    assert flag.rationale in details
    assert f"threshold of {fact.threshold:g} s" in details
    assert f"{fact.value:g} s" in details
    assert shown.run("Number(document.getElementById('cursor').value)") == round((flag.onset_ns - START_NS) / 1e6)


def test_a_decision_gives_its_candidates_and_vetoes(shown: Browser) -> None:
    decision = of(Decision)[0]
    scrub(shown, decision.decided_ns)
    shown.run("document.querySelector('.raised.decision').click()")
    table = text(shown, "#details table")
    assert all(candidate.action in table for candidate in decision.candidates)
    assert "the reader holds the book" in table


def test_the_keyboard_alone_replays_a_session(shown: Browser) -> None:
    at = "Number(document.getElementById('cursor').value)"
    shown.key(".")
    assert shown.run(at) == 1000
    shown.key(",")
    assert shown.run(at) == 0
    shown.key("j")
    assert text(shown, "#details .name") != ""
    before = shown.run(at)
    shown.key(" ")
    shown.until(f"{at} > {before} + 100")
    assert text(shown, "#play") == "Pause"
    shown.key(" ")
    assert text(shown, "#play") == "Play"


def test_what_comes_while_it_is_open_appears_by_itself(shown: Browser, timeline: SessionTimeline) -> None:
    flag = replace(of(SocialFlag)[0], event_id="new", state=FlagState.OPENED, rationale="It came late.")
    timeline.take(flag, START_NS + 601 * NS_PER_S)
    shown.until("document.getElementById('row-new') !== null")
    timeline.take(replace(flag, state=FlagState.WITHDRAWN), START_NS + 602 * NS_PER_S)
    shown.until("document.getElementById('row-new') === null")
    assert faults(shown) == []


def test_what_people_said_is_never_run(browser: Browser, timeline: SessionTimeline, url: str) -> None:
    evil = "</script><script>window.owned=1</script><img src=x onerror='window.owned=1'>{{data}}"
    said = replace(next(iter(of(Utterance))), utterance_id="evil", text=evil, locale='en" onclick="')
    fact = Evidence(measure=evil, value=1.0, start_ns=0, end_ns=0, quote=evil)
    flag = replace(of(SocialFlag)[0], event_id='x"><b>', rationale=evil, correction=evil, cue_id=evil, evidence=(fact,))
    timeline.take(said, said.end_ns)
    timeline.take(flag, flag.decision_ns)
    timeline.take(status(1, evil), START_NS + NS_PER_S)
    timeline.note(evil)
    browser.open(url)
    scrub(browser, flag.decision_ns + NS_PER_S)
    assert evil in text(browser, "#notes")
    assert evil in text(browser, "#raised")
    assert evil in text(browser, "#health")
    scrub(browser, said.end_ns - 1)
    assert evil in text(browser, "#said")
    assert browser.run("window.owned") is None


def test_a_phone_needs_no_sideways_scrolling(shown: Browser) -> None:
    shown.size(360, 740, 2)
    shown.until("document.documentElement.clientWidth === 360")
    shown.key("j")
    assert shown.run("document.documentElement.scrollWidth") == 360


def test_an_empty_bag_says_so(browser: Browser) -> None:
    empty = SessionTimeline("empty", 0)
    empty.complete()
    server = ViewServer(empty, None)
    thread = threading.Thread(target=server.serve)
    thread.start()
    browser.events.clear()
    browser.open(server.url)
    browser.key("j")
    browser.key(" ")
    assert "Nothing was flagged" in text(browser, "#list-empty")
    assert "no camera" in text(browser, "#no-still")
    assert faults(browser) == []
    server.close()
    thread.join(PATIENCE_S)


AXE = "axe_playwright_python"


@pytest.mark.skipif(importlib.util.find_spec(AXE) is None, reason="axe is not installed (it is in the test group)")
@pytest.mark.parametrize("state", ["light", "dark", "phone"])
def test_axe_finds_nothing_inaccessible(shown: Browser, state: str) -> None:
    spec = importlib.util.find_spec(AXE)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    script = Path(spec.submodule_search_locations[0], "axe.min.js").read_text(encoding="utf-8")
    shown.key("j")
    scrub(shown, START_NS + 301 * NS_PER_S)
    if state == "dark":
        shown.run("document.getElementById('theme').click()")
    if state == "phone":
        shown.size(360, 740, 2)
    shown.send("Runtime.evaluate", expression=script)
    found = shown.run("axe.run(document).then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))")
    assert found == []
