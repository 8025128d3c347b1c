"""Coders' requests: what a coder may see before and after their coding is done, and what reaches the log."""

import json
import re
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from norm_core.records.flag import Attribute, Polarity, Verdict
from norm_core.runtime.time import NS_PER_S, ReplayClock
from norm_monitor.session_log.reader import read
from norm_monitor.session_log.recording import Recording, open_recording
from norm_monitor.session_log.schema import CONSENSUS, Coding, Label, LabelRemoval, Review
from norm_monitor.session_log.study_file import Code, StudyFile
from norm_monitor.session_log.writer import StudyLog
from study_desk.coding.coding_server import CodingServer, PlayerMedia
from tests.norm_monitor.view import page_requests
from tests.norm_monitor.view.page_requests import serving
from tests.patience import PATIENCE_S
from tests.study_session import START_NS, write_log

STUDY = StudyFile(
    study="library-2026",
    codes=(
        Code(id="joke", name="joke", polarity=Polarity.COMPETENCE, attribute=Attribute.ENGAGEMENT, key="j"),
        Code(id="stray", name="stray", polarity=Polarity.ERROR),
    ),
)
EVENT: dict[str, Any] = {"code": "error_engagement", "start_ms": 1000, "end_ms": 2500, "severity": "major"}
TOKENS = {"token-ana": "Ana", "token-bo": "Bo"}
ANA, BO = ({"X_Token": f"token-{name}"} for name in ("ana", "bo"))
VIDEO = bytes(range(256)) * 10


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_log(tmp_path / "log", length_s=60, flags=4)
    first, *_ = open_recording(tmp_path / "log").flags
    with StudyLog.resume(tmp_path / "log", ReplayClock(START_NS)) as writer:
        review = Review(event_id=first.event_id, coder="Rev", verdict=Verdict.REJECT, note="the note of Rev")
        writer.append(review, START_NS)
    return tmp_path / "log"


@pytest.fixture
def server(log: Path, tmp_path: Path) -> Iterator[CodingServer]:
    (tmp_path / "s.mp4").write_bytes(VIDEO)
    media = PlayerMedia(
        still_at=lambda ns: b"jpeg" if ns < START_NS + 30 * NS_PER_S else None,
        sound_of=lambda start_ns, end_ns: f"{(end_ns - start_ns) // NS_PER_S} s".encode(),
        video=tmp_path / "s.mp4",
    )
    with serving(CodingServer(log, TOKENS, ReplayClock(START_NS), study=STUDY, media=media)) as served:
        yield served


def ask(server: CodingServer, path: str, body: object = None, **headers: str) -> tuple[int, str]:
    return page_requests.ask(server.port, path, body=body, **headers)


def read_page(server: CodingServer, who: str) -> dict[str, Any]:
    """Return the data in a coder's page."""
    status, text = ask(server, f"/?token=token-{who}")
    assert status == 200
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert match
    data: dict[str, Any] = json.loads(match[1])
    return data


def read_records(log: Path, *kinds: type) -> list[Any]:
    return [entry.record for entry in read(log).entries if isinstance(entry.record, kinds)]


def collect_secrets(recording: Recording) -> set[str]:
    """Collect the words of the monitor, of who judged its flags, and of the other coder."""
    flags = recording.flags
    secrets = {text for flag in flags for text in (flag.event_id, flag.rationale, flag.cue_id)}
    secrets |= {fact.measure for flag in flags for fact in flag.evidence}
    secrets |= {decision.chosen for decision in recording.decisions if decision.chosen}
    return secrets | {recording.info.condition, "the note of Rev", "what Bo wrote"}


def test_a_blind_coders_page_holds_nothing_of_the_monitor_and_others(server: CodingServer, log: Path) -> None:
    recording = open_recording(log)
    assert ask(server, "/events", {**EVENT, "comment": "what Bo wrote"}, **BO)[0] == 200
    assert ask(server, "/done", {}, **BO)[0] == 200
    data = json.dumps(read_page(server, "ana"), ensure_ascii=False)
    assert [secret for secret in collect_secrets(recording) if secret in data] == []
    assert '"Bo"' not in data
    assert read_page(server, "ana")["flags"] == []
    for path in ("/reviews", "/changes", "/consensus/agreed/x"):
        assert ask(server, path, **ANA)[0] == 404
    for path, body in (("/consensus", {"label_id": "x"}), ("/consensus/agreed", {})):
        status, message = ask(server, path, body, **ANA)
        assert (status, "marked this session as done" in message) == (409, True)


def test_a_done_coder_sees_done_codings_and_no_drafts(server: CodingServer, log: Path) -> None:
    ask(server, "/events", {**EVENT, "comment": "what Bo wrote"}, **BO)
    assert ask(server, "/done", {}, **ANA)[0] == 200
    data = read_page(server, "ana")
    assert data["rows"] == ["monitor", "Ana", "consensus"]
    assert data["waiting"] == ["Bo"]
    assert {flag["coder"] for flag in data["flags"]} == {"monitor"}
    assert data["info"]["condition"] == "apology"
    ask(server, "/done", {}, **BO)
    assert read_page(server, "ana")["coders"] == ["Ana", "Bo"]
    assert [flag["why"] for flag in read_page(server, "ana")["flags"] if flag["coder"] == "Bo"] == ["what Bo wrote"]


def test_each_version_of_an_event_is_logged_with_its_coder(server: CodingServer, log: Path) -> None:
    status, text = ask(server, "/events", EVENT, **ANA)
    assert status == 200
    first = json.loads(text)
    assert (first["label_id"], first["start"], first["end"], first["severity"]) == ("e1", 1000, 2500, "major")
    ask(server, "/events", {**EVENT, "code": "joke", "label_id": "e1", "severity": None}, **ANA)
    ask(server, "/events", {**EVENT, "start_ms": 2000}, **ANA)
    ask(server, "/events/remove", {"label_id": "e2"}, **ANA)
    ask(server, "/events", EVENT, **BO)
    versions = [(r.coder, r.label_id) for r in read_records(log, Label)]
    assert versions == [("Ana", "e1"), ("Ana", "e1"), ("Ana", "e2"), ("Bo", "e1")]
    assert read_records(log, LabelRemoval) == [LabelRemoval(coder="Ana", label_id="e2")]
    assert open_recording(log).labels == ()
    ask(server, "/done", {}, **ANA)
    (label,) = open_recording(log).labels
    assert (label.polarity, label.attribute, label.code, label.severity) == ("competence", "engagement", "joke", None)
    assert (label.start_ns - START_NS, label.end_ns - START_NS) == (NS_PER_S, 2_500_000_000)
    assert read_records(log, Coding) == [Coding(coder="Ana", labels=1)]
    assert read(log).faults == ()


def test_a_done_coding_cannot_change(server: CodingServer, log: Path) -> None:
    ask(server, "/events", EVENT, **ANA)
    ask(server, "/done", {}, **ANA)
    before = read(log).head
    for path, body in (
        ("/events", EVENT),
        ("/events", {**EVENT, "label_id": "e1"}),
        ("/events/remove", {"label_id": "e1"}),
        ("/done", {}),
    ):
        assert ask(server, path, body, **ANA)[0] == 409
    assert read(log).head == before


@pytest.mark.parametrize(
    "changes",
    [
        {"code": "stray"},
        {"code": "none"},
        {"code": None},
        {"start_ms": -1},
        {"start_ms": 3000},
        {"end_ms": 60_002},
        {"end_ms": 1e300},
        {"end_ms": "Infinity"},
        {"start_ms": "NaN"},
        {"severity": "awful"},
        {"code": "joke"},  # a competence, which has no severity
        {"comment": "x" * 501},
        {"label_id": "e7"},
        {"label_id": "../e1"},
        {"coder": "Bo"},
    ],
)
def test_an_invalid_event_is_refused_and_not_logged(
    server: CodingServer, log: Path, changes: dict[str, object]
) -> None:
    before = read(log).head
    assert ask(server, "/events", {**EVENT, **changes}, **ANA)[0] in {400, 409}
    assert read(log).head == before


@pytest.mark.parametrize(
    "path", ["/still?at=0", "/sound?piece=0", "/video", "/video?token=wrong", "/still?at=0&token=token-ana"]
)
def test_media_need_the_token(server: CodingServer, path: str) -> None:
    assert ask(server, path)[0] == 403


def test_stills_and_sound_follow_the_requested_time(server: CodingServer) -> None:
    assert ask(server, "/still?at=1000", **ANA) == (200, "jpeg")
    assert ask(server, "/still?at=31000", **ANA)[0] == 204
    assert ask(server, "/sound?piece=1", **ANA) == (200, "30 s")
    for path in ("/still", "/still?at=-1", "/still?at=²", "/still?at=" + "9" * 20, "/sound?piece=3", "/sound?piece=x"):
        assert ask(server, path.replace("²", "%C2%B2"), **ANA)[0] == 404


@pytest.mark.parametrize(
    ("requested", "status", "content_range"),
    [
        ("", 206, "0-2559/2560"),
        ("bytes=10-19", 206, "10-19/2560"),
        ("bytes=2550-9999", 206, "2550-2559/2560"),
        ("bytes=2560-", 416, "*/2560"),
        ("bytes=0-1,5-6", 416, "*/2560"),
        ("bytes=" + "9" * 40 + "-", 416, "*/2560"),
    ],
)
def test_a_video_is_served_in_ranges(server: CodingServer, requested: str, status: int, content_range: str) -> None:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    connection.request("GET", "/video?token=token-ana", headers={"Range": requested} if requested else {})
    answer = connection.getresponse()
    data = answer.read()
    assert (answer.status, answer.headers["Content-Range"]) == (status, f"bytes {content_range}")
    if status == 206:
        first, last = map(int, content_range.split("/", maxsplit=1)[0].split("-"))
        assert data == VIDEO[first : last + 1]


def code_twice(server: CodingServer) -> dict[str, Any]:
    """Ana and Bo agree on one event, differ on one, and each has one alone; returns Ana's page."""
    for start_ms in (1000, 20_000, 40_000):
        ask(server, "/events", {**EVENT, "start_ms": start_ms, "end_ms": start_ms + 500}, **ANA)
    for start_ms, code in ((1200, "error_engagement"), (20_100, "joke"), (50_000, "joke")):
        severity = None if code == "joke" else EVENT["severity"]
        event = {**EVENT, "code": code, "start_ms": start_ms, "end_ms": start_ms, "severity": severity}
        ask(server, "/events", event, **BO)
    for who in (ANA, BO):
        assert ask(server, "/done", {}, **who)[0] == 200
    return read_page(server, "ana")


def test_a_consensus_keeps_each_coders_opinion(server: CodingServer, log: Path) -> None:
    compared = code_twice(server)["compared"]
    assert [(event["agreed"], sorted(event["opinions"]), event["missing"]) for event in compared] == [
        (True, ["Ana", "Bo"], []),
        (False, ["Ana", "Bo"], []),
        (False, ["Ana"], ["Bo"]),
        (False, ["Bo"], ["Ana"]),
    ]
    _, differing, of_ana, of_bo = (event["id"] for event in compared)
    assert json.loads(ask(server, "/consensus/agreed", {}, **ANA)[1]) == {"adopted": 1}
    assert ask(server, "/consensus", {"label_id": differing, "opinion_of": "Bo"}, **ANA)[0] == 200
    assert ask(server, "/consensus", {"label_id": of_ana}, **BO)[0] == 200
    other = {"label_id": of_bo, "event": {**EVENT, "start_ms": 50_000, "end_ms": 50_100}}
    assert ask(server, "/consensus", other, **BO)[0] == 200
    agreed, as_bo, own = read_records(log, Label)[-3:]
    assert {agreed.coder, as_bo.coder, own.coder} == {CONSENSUS}
    assert (as_bo.code, as_bo.editor) == ("joke", "Ana")
    assert [(o.coder, o.polarity, o.code) for o in as_bo.opinions] == [
        ("Ana", "error", ""),
        ("Bo", "competence", "joke"),
    ]
    assert (own.attribute, own.end_ns - own.start_ns, own.editor) == ("engagement", 100_000_000, "Bo")
    (removal,) = read_records(log, LabelRemoval)
    assert (removal.coder, removal.editor, [o.coder for o in removal.opinions]) == (CONSENSUS, "Bo", ["Ana"])
    recording = open_recording(log)
    assert recording.coders == {"Ana", "Bo"}
    assert len([label for label in recording.labels if label.coder == CONSENSUS]) == 3
    assert all(event["settled"] for event in read_page(server, "bo")["compared"])


def test_a_consensus_needs_two_codings_and_their_events(server: CodingServer, log: Path) -> None:
    ask(server, "/events", EVENT, **ANA)
    ask(server, "/done", {}, **ANA)
    (event,) = read_page(server, "ana")["compared"]
    assert ask(server, "/consensus", {"label_id": event["id"], "opinion_of": "Ana"}, **ANA)[0] == 409
    ask(server, "/done", {}, **BO)
    for body in (
        {"label_id": event["id"], "opinion_of": "Bo"},
        {"label_id": "none", "opinion_of": "Ana"},
        {"label_id": event["id"], "event": {**EVENT, "code": "none"}},
    ):
        assert ask(server, "/consensus", body, **ANA)[0] == 409
    assert ask(server, "/consensus", {"label_id": event["id"], "opinion_of": "Ana"}, **BO)[0] == 200
    assert ask(server, "/consensus", {"label_id": event["id"]}, **BO)[0] == 200
    assert [label for label in open_recording(log).labels if label.coder == CONSENSUS] == []


def test_drafts_and_ids_survive_a_restart(server: CodingServer, log: Path) -> None:
    code_twice(server)
    server.close()
    cy = {"X_Token": "token-cy"}
    coders = {**TOKENS, "token-cy": "Cy"}
    with serving(CodingServer(log, coders, ReplayClock(START_NS), study=STUDY)) as second:
        assert (read_page(second, "ana")["done"], read_page(second, "cy")["done"]) == (True, False)
        for expected in ("e1", "e2"):
            assert json.loads(ask(second, "/events", EVENT, **cy)[1])["label_id"] == expected
        ask(second, "/events/remove", {"label_id": "e2"}, **cy)
    with serving(CodingServer(log, coders, ReplayClock(START_NS), study=STUDY)) as third:
        assert [flag["label_id"] for flag in read_page(third, "cy")["flags"]] == ["e1"]
        assert json.loads(ask(third, "/events", EVENT, **cy)[1])["label_id"] == "e3"


def test_concurrent_coders_keep_the_log_sound(server: CodingServer, log: Path) -> None:
    answers: list[int] = []

    def code(who: dict[str, str]) -> None:
        answers.extend(ask(server, "/events", EVENT, **who)[0] for _ in range(8))

    threads = [threading.Thread(target=code, args=(who,)) for who in (ANA, BO, ANA)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert answers == [200] * 24
    assert read(log).faults == ()
    assert len({label.label_id for label in open_recording(log).drafts if label.coder == "Ana"}) == 16
