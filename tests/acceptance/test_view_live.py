"""`tactful view` of a running graph: live nodes, a browser, and publishers that Tactful did not make."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.tactful_up import running, running_up
from tests.observer import Observer
from tests.patience import PATIENCE_S
from tests.study_desk.browser import CHROMIUM, Browser

pytestmark = [
    pytest.mark.ros,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (Debian, Ubuntu: apt install chromium)"),
]

PROFILE = """
/tactful/monitor:
  ros__parameters: {windows.sources: [utterances]}
"""
HOSTILE = "Where can I <img src=x onerror='window.owned=1'> buy a ticket?"
TALK = [  # speaker, start, end, words: a question that waits nine seconds for its answer
    ("USER", 0, 2, HOSTILE),
    ("ROBOT", 11, 13, "You can buy it at the counter."),
    ("UNKNOWN", 59, 59, ""),
]


def say(observer: Observer, publisher: Any, readers: int) -> None:
    """Publish a talk of the last minute."""
    from norm_interfaces.msg import Utterance

    observer.until(lambda: publisher.get_subscription_count() >= readers, "everyone who reads the talk")
    begin_ns = time.time_ns() - 60 * 10**9
    for number, (speaker, start_s, end_s, text) in enumerate(TALK):
        start_ns, end_ns = begin_ns + start_s * 10**9, begin_ns + end_s * 10**9
        message = Utterance(
            utterance_id=f"{begin_ns}-{number}",
            speaker=getattr(Utterance, f"SPEAKER_{speaker}"),
            text=text,
            start_ns=start_ns,
            end_ns=end_ns,
            final=bool(text),
        )
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(start_ns, 10**9)
        publisher.publish(message)


def inner(browser: Browser, name: str) -> str:
    return str(browser.run(f"document.getElementById({json.dumps(name)}).innerText"))


def until_shown(browser: Browser, name: str, text: str) -> None:
    browser.until(f"document.getElementById({json.dumps(name)}).innerText.includes({json.dumps(text)})", PATIENCE_S)


def test_a_flag_appears_and_stays_while_the_graph_goes_and_comes(tmp_path: Path, observer: Observer) -> None:
    from norm_interfaces.msg import Utterance

    profile = tmp_path / "robot.yaml"
    profile.write_text(PROFILE, encoding="utf-8")
    publisher = observer.node.create_publisher(Utterance, "/tactful/utterances", 50)
    with running("view") as view, Browser(tmp_path / "profile") as browser:
        browser.open(view.wait_for("http://"))
        until_shown(browser, "notes", "nothing is published")
        for flags in ("1 in all", "2 in all"):
            with running_up(tmp_path / "log", str(profile)) as up:
                up.wait_for("all nodes are active")
                until_shown(browser, "health", "/tactful/monitor: ok")
                browser.until("document.getElementById('notes').hidden")
                say(observer, publisher, readers=2)
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
