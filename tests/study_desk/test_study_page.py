"""The report in a real browser: what is seen, clicked, typed and taken away."""

from dataclasses import replace
from pathlib import Path

import pytest

from norm_core.records.flag import Evidence, Verdict
from norm_monitor.session_log.recording import Recording
from norm_monitor.session_log.schema import Review
from study_desk.analysis.session_page import render_session
from tests.norm_monitor.view.browser import Browser, faults, inaccessible, needs_axe, needs_chromium, text

pytestmark = needs_chromium


@pytest.fixture
def report(browser: Browser, tmp_path: Path, session: Recording) -> Browser:
    """The report of the generated session, freshly opened."""
    (tmp_path / "report.html").write_text(render_session(session), encoding="utf-8")
    browser.events.clear()
    browser.open((tmp_path / "report.html").as_uri())
    return browser


def test_the_report_shows_the_session_offline(report: Browser, session: Recording) -> None:
    assert text(report, "h1") == "Session S07"
    errors = sum(flag.polarity == "error" for flag in session.flags)
    assert text(report, ".tiles .error dd").startswith(str(errors))
    assert text(report, "#count") == f"{len(session.flags)} in all"
    asked = [e["params"]["request"]["url"] for e in report.events if e.get("method") == "Network.requestWillBeSent"]
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert faults(report) == []


@needs_axe
@pytest.mark.parametrize("state", ["light", "dark"])
def test_the_report_is_accessible(report: Browser, state: str) -> None:
    report.key("j")
    if state == "dark":
        report.run("document.getElementById('theme').click()")
    report.run("document.getElementById('whatif').open = true")
    assert inaccessible(report) == []


def test_markup_in_words_is_not_run(browser: Browser, tmp_path: Path, session: Recording) -> None:
    evil = "</script><script>window.owned=1</script><img src=x onerror='window.owned=1'>{{data}}"
    fact = Evidence(measure=evil, value=1.0, start_ns=0, end_ns=0, quote=evil)
    flag = replace(session.flags[0], rationale=evil, correction=evil, cue_id=evil, evidence=(fact,))
    utterance = replace(session.utterances[0], text=evil, locale='en" onclick="')
    doctored = replace(session, flags=(flag,), utterances=(utterance,), notes=(evil,))
    (tmp_path / "evil.html").write_text(render_session(doctored), encoding="utf-8")
    browser.open((tmp_path / "evil.html").as_uri())
    browser.key("j")
    assert evil in text(browser, "#details")
    assert browser.run("window.owned") is None


def test_the_report_shows_verdicts_and_takes_none(browser: Browser, tmp_path: Path, session: Recording) -> None:
    reviews = tuple(
        Review(event_id=flag.event_id, coder=coder, verdict=verdict)
        for flag, coder, verdict in zip(session.flags, ("Bo", "Cleo"), (Verdict.REJECT, Verdict.ACCEPT), strict=False)
    )
    (tmp_path / "judged.html").write_text(render_session(replace(session, reviews=reviews)), encoding="utf-8")
    browser.events.clear()
    browser.open((tmp_path / "judged.html").as_uri())
    browser.key("j")
    assert "In the log: Bo rejected." in text(browser, "#details")
    browser.key("j")
    browser.key("r")
    assert "In the log: Cleo accepted." in text(browser, "#details")
    assert faults(browser) == []
