"""`tactful view` of a running graph: live nodes, a browser, and publishers that Tactful did not make."""

import json
import time
from pathlib import Path

import pytest

from norm_core.records.flag import Verdict
from norm_monitor.session_log.reader import read
from norm_monitor.session_log.schema import Kind
from tests.acceptance.tactful_up import running, running_up, say
from tests.norm_monitor.view.browser import Browser, needs_chromium
from tests.norm_nodes.test_selector import ask
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = [
    pytest.mark.ros,
    needs_chromium,
]

PROFILE = """
/tactful/monitor:
  ros__parameters: {windows.sources: [utterances]}
"""
HOSTILE = "Where can I <img src=x onerror='window.owned=1'> buy a ticket?"
TALK = [  # speaker, start, end, words: a question that waits nine seconds for its answer
    ("USER", 0, 2, HOSTILE),
    ("ROBOT", 11, 13, "You can buy it at the counter."),
    ("UNKNOWN", 24, 24, ""),
]
REPAIRS = ["Apologise for the error.", "Call a member of staff."]
UTTERANCES, TALK_NS = "/tactful/utterances", 25 * 10**9
STUDY = """
/tactful/monitor:
  ros__parameters:
    windows.sources: [utterances]
    study: {{log: {log}, name: library, session: S07}}
/tactful/selector:
  ros__parameters: {{when_unsure: best_effort}}
"""


def inner(browser: Browser, name: str) -> str:
    return str(browser.run(f"document.getElementById({json.dumps(name)}).innerText"))


def until_shown(browser: Browser, name: str, text: str) -> None:
    browser.until(f"document.getElementById({json.dumps(name)}).innerText.includes({json.dumps(text)})", PATIENCE_S)


def test_a_flag_appears_and_stays_while_the_graph_goes_and_comes(tmp_path: Path, observer: Observer) -> None:
    profile = tmp_path / "robot.yaml"
    profile.write_text(PROFILE, encoding="utf-8")
    with running("view") as view, Browser(tmp_path / "profile") as browser:
        browser.open(view.wait_for("http://"))
        opened_ns = time.time_ns()
        until_shown(browser, "notes", "nothing is published")
        for flags in ("1 in all", "2 in all"):
            with running_up(tmp_path / "log", str(profile)) as up:
                up.wait_for("all nodes are active")
                until_shown(browser, "health", "/tactful/monitor: ok")
                browser.until("document.getElementById('notes').hidden")
                say(observer, UTTERANCES, TALK, readers=3, begin_ns=max(opened_ns, time.time_ns() - TALK_NS))
                until_shown(browser, "count", flags)
                assert up.interrupt() == 0
            browser.key("l")
            until_shown(browser, "health", "no heartbeat for 5 s")
            until_shown(browser, "notes", "nothing is published")
        browser.key("j")
        until_shown(browser, "details", "threshold of 5 s")
        assert HOSTILE in inner(browser, "details")
        assert browser.run("window.owned") is None
        assert view.interrupt() == 130


def test_a_late_viewer_sees_the_talk_so_far_and_judges_a_flag(tmp_path: Path, observer: Observer) -> None:
    from norm_interfaces.msg import SocialFlag

    profile, log = tmp_path / "robot.yaml", tmp_path / "study"
    profile.write_text(STUDY.format(log=log), encoding="utf-8")
    with running_up(tmp_path / "log", str(profile)) as up, Browser(tmp_path / "profile") as browser:
        up.wait_for("all nodes are active")
        flags = observer.collect(SocialFlag, "/tactful/flags", 50)
        say(observer, UTTERANCES, TALK, readers=2, begin_ns=time.time_ns() - TALK_NS)
        observer.until(lambda: flags, "a flag before the page is opened")
        ask(observer, query_id=flags[0].event_id, candidates=REPAIRS, situation=flags[0].rationale, others_given=True)
        with running("view") as view:
            browser.open(view.wait_for("http://"))
            until_shown(browser, "count", "1 in all")
            # The transcript lies below the first screen, and what is not drawn yet has no innerText.
            browser.until(f"document.getElementById('lines').textContent.includes({json.dumps(HOSTILE)})", PATIENCE_S)
            last = "[...document.querySelectorAll('[id^=row-decision]')].at(-1)?.click()"  # of the talk that is shown
            browser.until(f"({last}, document.querySelector('#details p button') !== null)", PATIENCE_S)
            assert HOSTILE[:11] in inner(browser, "details").partition("Request")[2].partition("Candidates")[0]
            browser.run("document.querySelector('#details p button').click()")  # the flag that asked
            browser.until("document.querySelector('[data-verdict=reject]') !== null", PATIENCE_S)
            browser.run("document.querySelector('[data-verdict=reject]').click()")
            browser.until("document.activeElement.name === 'name'")
            browser.run("document.activeElement.value = 'Ana'; document.activeElement.form.requestSubmit()")
            until_shown(browser, "rows", "rejected")
            assert up.interrupt() == 0
    (review,) = [entry.record for entry in read(log).entries if entry.kind is Kind.REVIEW]
    assert (review.coder, review.verdict) == ("Ana", Verdict.REJECT)
