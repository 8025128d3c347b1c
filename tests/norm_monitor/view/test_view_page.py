"""The view in a real browser: the replay of a session, with its reasons."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from norm_core.records.decision import Decision
from norm_core.records.flag import Evidence, FlagState, SocialFlag
from norm_core.records.speech import Utterance
from norm_core.runtime.time import NS_PER_S
from norm_monitor.view.timeline import SessionTimeline
from tests.norm_monitor.view.browser import Browser, faults, inaccessible, needs_axe, needs_chromium, text
from tests.norm_monitor.view.view_pages import REMEDY, page_of, status
from tests.study_session import START_NS, records

pytestmark = needs_chromium


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
    with page_of(browser, timeline) as address:
        yield address


def at_s(second: float) -> int:
    """Return the time of a second of the session."""
    return START_NS + round(second * NS_PER_S)


def of(kind: type[Any]) -> list[Any]:
    """Return the session's records of a kind."""
    return [record for _, record in records() if isinstance(record, kind)]


def scrub(browser: Browser, at_ns: int) -> None:
    """Move the scrubber, as a finger would."""
    browser.run(
        "(() => { const c = document.getElementById('cursor');"
        f"c.value = {(at_ns - START_NS) / 1e6}; c.dispatchEvent(new Event('input')); }})()"
    )


def test_the_page_sums_up_the_session_and_asks_only_its_own_server(shown: Browser, url: str) -> None:
    flags = {flag.event_id: flag for flag in of(SocialFlag)}
    errors = sum(flag.polarity == "error" for flag in flags.values())
    assert text(shown, "h1") == "library_s07"
    assert f"{errors} errors, {len(flags) - errors} competences, {len(of(Decision))} decisions" in text(shown, "#meta")
    asked = [e["params"]["request"]["url"] for e in shown.events if e.get("method") == "Network.requestWillBeSent"]
    assert [one for one in asked if not one.startswith((url.split("?", maxsplit=1)[0], "data:", "blob:"))] == []
    assert faults(shown) == []


def test_the_scrubber_shows_who_speaks_and_what_was_raised(shown: Browser) -> None:
    utterance = next(utterance for utterance in of(Utterance) if utterance.final)
    scrub(shown, utterance.end_ns - 1)
    assert utterance.text in text(shown, "#said .speaking")
    flag = of(SocialFlag)[0]
    scrub(shown, flag.decision_ns - NS_PER_S // 10)
    assert flag.rationale not in text(shown, "#raised")
    scrub(shown, flag.decision_ns + NS_PER_S)
    assert flag.rationale in text(shown, "#raised")


def test_the_moment_shows_no_half_lines(shown: Browser, timeline: SessionTimeline) -> None:
    said = next(utterance for utterance in of(Utterance) if utterance.final)
    words = " ".join(["and so on"] * 60)
    for number in range(4):
        times = {"start_ns": at_s(500 + number), "end_ns": at_s(500.5 + number), "stamp_ns": at_s(500.5 + number)}
        timeline.take(replace(said, utterance_id=f"long{number}", text=f"{number} {words}", **times), at_s(504))
    shown.until("document.getElementById('lines').textContent.includes('3 and so on')")
    scrub(shown, at_s(503.2))
    first_line = "document.querySelector('#said p').getBoundingClientRect()"
    assert text(shown, "#said").count("and so on") >= 60
    assert "3 and so on" in text(shown, "#said .speaking")
    assert shown.run(f"{first_line}.top >= document.getElementById('said').getBoundingClientRect().top - 1")


def test_a_flag_shows_its_times_and_when_it_was_flagged(shown: Browser, timeline: SessionTimeline) -> None:
    times = {"onset_ns": at_s(40.96), "offset_ns": at_s(44.02), "decision_ns": at_s(47.28)}
    flag = replace(of(SocialFlag)[0], event_id="timed", state=FlagState.OPENED, **times)
    timeline.take(flag, at_s(47.28))
    shown.until("document.getElementById('row-timed') !== null")
    scrub(shown, at_s(45))
    assert "Grey: not yet flagged" in text(shown, "#later-note")
    shown.run("document.getElementById('row-timed').click()")
    assert text(shown, "#row-timed .when") == "0:41"
    for place in ("#details .facts", "#raised"):
        assert "0:41.0 to 0:44.0 (3.0 s)" in text(shown, place)
        assert "flagged at 0:47.3, 3.3 s after it ended" in text(shown, place)
    assert "when the monitor raised it" in text(shown, ".now")


def test_the_transcript_is_searched_and_walked_by_keyboard(shown: Browser) -> None:
    shown.run("document.getElementById('line-words').focus()")
    for letter in "reading room":
        shown.key(letter)
    line_count = shown.run("document.querySelectorAll('#lines li').length")
    assert 1 < line_count < len(of(Utterance))
    assert text(shown, "#line-count").startswith(f"{line_count} of")
    shown.key("Tab", code=9)
    first = shown.run("document.activeElement.textContent")
    shown.key("ArrowDown", code=40)
    second = shown.run("document.activeElement.textContent")
    assert "reading room" in first.lower()
    assert "reading room" in second.lower()
    assert first != second
    shown.run("document.activeElement.click()")
    assert shown.run("document.querySelector('#lines [aria-current]').textContent") == second
    for letter in "zebra":
        shown.run(f"document.getElementById('line-words').value += '{letter}'")
    shown.run("document.getElementById('line-words').dispatchEvent(new Event('input'))")
    assert text(shown, "#no-lines") == "No line holds these words."


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


def test_quoted_markup_is_never_run(browser: Browser, timeline: SessionTimeline, url: str) -> None:
    evil = "</script><script>window.owned=1</script><img src=x onerror='window.owned=1'>{{data}}"
    utterance = replace(next(iter(of(Utterance))), utterance_id="evil", text=evil, locale='en" onclick="')
    fact = Evidence(measure=evil, value=1.0, start_ns=0, end_ns=0, quote=evil)
    flag = replace(of(SocialFlag)[0], event_id='x"><b>', rationale=evil, correction=evil, cue_id=evil, evidence=(fact,))
    timeline.take(utterance, utterance.end_ns)
    timeline.take(flag, flag.decision_ns)
    timeline.take(status(1, evil), START_NS + NS_PER_S)
    timeline.note(evil)
    browser.open(url)
    scrub(browser, flag.decision_ns + NS_PER_S)
    assert evil in text(browser, "#notes")
    assert evil in text(browser, "#raised")
    assert evil in text(browser, "#health")
    scrub(browser, utterance.end_ns - 1)
    assert evil in text(browser, "#said")
    assert browser.run("window.owned") is None


def test_an_empty_bag_shows_that_nothing_was_flagged(browser: Browser) -> None:
    empty = SessionTimeline("empty", 0)
    empty.complete()
    browser.events.clear()
    with page_of(browser, empty) as url:
        browser.open(url)
        browser.key("j")
        browser.key(" ")
        assert "Nothing was flagged" in text(browser, "#list-empty")
        assert "no camera" in text(browser, "#no-still")
    assert faults(browser) == []


@needs_axe
@pytest.mark.parametrize("state", ["light", "dark", "phone"])
def test_axe_finds_nothing_inaccessible(shown: Browser, state: str) -> None:
    shown.key("j")
    scrub(shown, START_NS + 301 * NS_PER_S)
    if state == "dark":
        shown.run("document.getElementById('theme').click()")
    if state == "phone":
        shown.size(360, 740, 2)
    assert inaccessible(shown) == []
