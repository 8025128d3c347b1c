"""The review server: who may speak to it, and what reaches the log."""

import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from norm_core.runtime.time import ReplayClock
from sim_replays.examples.study_session import START_NS, write_log
from study_desk.log.reader import read
from study_desk.log.recording import open_recording
from study_desk.report.review_server import ReviewServer
from tests.patience import PATIENCE_S
from tests.study_desk import page_requests
from tests.study_desk.browser import CHROMIUM, Browser

TOKENS = {"token-ana": "Ana", "token-bo": "Bo"}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_log(tmp_path / "log", length_s=60, flags=4)
    return tmp_path / "log"


@pytest.fixture
def server(log: Path) -> Iterator[ReviewServer]:
    served = ReviewServer(log, TOKENS, ReplayClock(START_NS), clip=lambda recording, event: (b"clip", "video/webm"))
    thread = threading.Thread(target=served.serve)
    thread.start()
    yield served
    served.close()
    thread.join(10)
    assert not thread.is_alive()


def ask(server: ReviewServer, path: str, *, body: object = None, **headers: str) -> tuple[int, str]:
    return page_requests.ask(server.port, path, body=body, **headers)


def verdict(log: Path, verdict: str = "accept", **more: object) -> dict[str, object]:
    return {"event_id": open_recording(log).flags[0].event_id, "reviewer": "x", "verdict": verdict, **more}


def test_a_verdict_lands_in_the_log_under_its_tokens_name(server: ReviewServer, log: Path) -> None:
    status, _ = ask(server, "/reviews", body=verdict(log, note="好"), **{"X-Token": "token-ana"})
    assert status == 200
    contents = read(log)
    assert contents.faults == ()
    assert [(r.reviewer, r.note) for r in open_recording(log).reviews] == [("Ana", "好")]


def test_a_reviewer_sees_their_own_verdicts_and_no_others(server: ReviewServer, log: Path) -> None:
    ask(server, "/reviews", body=verdict(log, note="mine alone"), **{"X-Token": "token-ana"})
    assert "mine alone" in ask(server, "/?token=token-ana")[1]
    assert "mine alone" not in ask(server, "/?token=token-bo")[1]


@pytest.mark.parametrize(
    ("body", "status"),
    [("{", 400), ({"event_id": "none", "verdict": "accept"}, 400), ("x" * 200_000, 413), ([], 400)],
)
def test_what_is_no_verdict_is_refused_and_the_log_untouched(
    server: ReviewServer, log: Path, body: object, status: int
) -> None:
    before = read(log).head
    assert ask(server, "/reviews", body=body, **{"X-Token": "token-ana"})[0] == status
    bad = verdict(log, "maybe")
    assert ask(server, "/reviews", body=bad, **{"X-Token": "token-ana"})[0] == 400
    assert read(log).head == before


def test_it_listens_on_this_machine_alone(server: ReviewServer) -> None:
    assert server.host == "127.0.0.1"
    with pytest.raises(OSError, match="refused"):
        HTTPConnection("127.0.0.2", server.port, timeout=PATIENCE_S).connect()


def test_clips_need_the_token_too(server: ReviewServer) -> None:
    assert ask(server, "/clip/e", **{"X-Token": "token-bo"}) == (200, "clip")
    assert ask(server, "/clip/e")[0] == 403


def test_reviewers_at_once_keep_the_chain_whole(server: ReviewServer, log: Path) -> None:
    events = [flag.event_id for flag in open_recording(log).flags]
    answers: list[int] = []

    def review(token: str) -> None:
        for _ in range(3):
            for event in events:
                body = {"event_id": event, "reviewer": "", "verdict": "accept"}
                answers.append(ask(server, "/reviews", body=body, **{"X-Token": token})[0])

    threads = [threading.Thread(target=review, args=(token,)) for token in TOKENS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == [200] * 2 * 3 * len(events)
    contents = read(log)
    assert contents.faults == ()
    assert sum(entry.kind == "review" for entry in contents.entries) == len(answers)


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (Debian, Ubuntu: apt install chromium)")
def test_the_page_saves_as_one_judges(server: ReviewServer, log: Path, tmp_path: Path) -> None:
    with Browser(tmp_path / "profile") as browser:
        browser.open(server.url("token-bo"))
        assert browser.run("document.getElementById('reviewer').value") == "Bo"
        browser.key("j")
        browser.key("r")
        browser.until("document.getElementById('saved').innerText === 'Saved in the log.'")
    assert [(r.reviewer, r.verdict.value) for r in open_recording(log).reviews] == [("Bo", "reject")]
