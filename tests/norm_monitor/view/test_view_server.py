"""The view's server: whom it answers, with what, and with which pictures."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import cv2
import numpy as np
import pytest

from norm_core.bags.writer import BagWriter
from norm_core.records.presence import Face
from norm_core.runtime.time import NS_PER_MS, NS_PER_S
from norm_monitor.privacy.blur import Pixels
from norm_monitor.session_log.schema import Review
from norm_monitor.view.page_server import MAX_BODY_BYTES
from norm_monitor.view.pictures import BagStills
from norm_monitor.view.timeline import SessionTimeline
from norm_monitor.view.view_server import ViewServer
from tests.node_records import camera_frame
from tests.norm_monitor.view.page_requests import ask, serving

START_NS = 1_000 * NS_PER_S


def still_at(stamp_ns: int) -> bytes | None:
    """Return a picture of the first second alone."""
    since_ms = (stamp_ns - START_NS) // NS_PER_MS
    return f"picture of {since_ms} ms".encode() if since_ms < 1_000 else None


class Controls:
    """Controls of a monitor that only writes down what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.problem = ""

    def set_sensitivity(self, name: str) -> str:
        self.asked.append(name)
        return self.problem

    def set_muted(self, name: str, *, is_muted: bool) -> str:
        self.asked.append((name, is_muted))
        return self.problem

    def review(self, review: Review) -> str:
        self.asked.append(review.verdict)
        return self.problem


@pytest.fixture
def controls() -> Controls:
    return Controls()


@pytest.fixture
def timeline() -> SessionTimeline:
    return SessionTimeline("secret_bag", START_NS)


@pytest.fixture
def server(timeline: SessionTimeline, controls: Controls) -> Iterator[ViewServer]:
    with serving(ViewServer(timeline, still_at, controls=controls, is_live=True)) as served:
        yield served


def token_of(server: ViewServer) -> str:
    return parse_qs(urlsplit(server.url).query)["token"][0]


def test_the_token_opens_the_page_and_its_stills(server: ViewServer, timeline: SessionTimeline) -> None:
    timeline.complete()
    token = token_of(server)
    assert "secret_bag" in ask(server.port, f"/?token={token}")[1]
    assert ask(server.port, "/still?at=400", X_Token=token) == (200, "picture of 400 ms")
    assert ask(server.port, "/still?at=2000", X_Token=token) == (204, "")
    assert json.loads(ask(server.port, "/changes?since=1", X_Token=token)[1])["complete"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/changes", 400),
        ("/changes?since=-1", 400),
        ("/changes?since=" + "9" * 5_000, 400),
        ("/still?at=²", 404),
        ("/../etc/passwd", 404),
        ("/reviews", 404),
    ],
)
def test_an_invalid_request_is_refused(server: ViewServer, path: str, status: int) -> None:
    assert ask(server.port, path.replace("²", "%C2%B2"), X_Token=token_of(server))[0] == status


VERDICT = {"event_id": "e", "coder": "Cleo", "verdict": "accept"}


def test_the_token_changes_settings_and_gives_verdicts(server: ViewServer, controls: Controls) -> None:
    token = token_of(server)
    for path, body in (
        ("/settings", {"sensitivity": "keen"}),
        ("/settings", {"mute": "greets"}),
        ("/settings", {"unmute": "greets"}),
        ("/reviews", VERDICT),
    ):
        assert ask(server.port, path, body=body, X_Token=token) == (200, "done")
    assert controls.asked == ["keen", ("greets", True), ("greets", False), "accept"]


def test_a_refused_verdict_is_reported_and_not_shown(
    server: ViewServer, controls: Controls, timeline: SessionTimeline
) -> None:
    controls.problem = "monitor: the disk is full"
    assert ask(server.port, "/reviews", body=VERDICT, X_Token=token_of(server)) == (409, controls.problem)
    assert timeline.changes()["reviews"] == []


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/settings", {"sensitivity": "loud"}, 400),
        ("/settings", {"sensitivity": ["keen"]}, 400),
        ("/settings", {"mute": "a" * 61}, 400),
        ("/settings", {"mute": "../x"}, 400),
        ("/settings", "[" * 90_000, 400),
        ("/settings", "\ud800", 400),
        ("/reviews", {**VERDICT, "coder": ""}, 400),
        ("/reviews", {**VERDICT, "verdict": "maybe"}, 400),
        ("/reviews", {**VERDICT, "secret": 1}, 400),
        ("/reviews", "x" * (MAX_BODY_BYTES + 1), 413),
        ("/parameters", {"sensitivity": "keen"}, 404),
    ],
)
def test_an_invalid_change_is_refused(
    server: ViewServer, controls: Controls, path: str, body: object, status: int
) -> None:
    data = body.encode("utf-8", "replace").decode() if isinstance(body, str) else body
    assert ask(server.port, path, body=data, X_Token=token_of(server))[0] == status
    assert controls.asked == []


@pytest.mark.parametrize("path", ["/settings", "/reviews"])
def test_over_a_bag_nothing_can_be_changed(timeline: SessionTimeline, path: str) -> None:
    with serving(ViewServer(timeline, None)) as served:
        assert ask(served.port, path, body=VERDICT, X_Token=token_of(served))[0] == 404


LEFT_HALF = Face(left_ratio=0, top_ratio=0, width_ratio=0.4, height_ratio=1, confidence=1)


def picture(second: int) -> Pixels:
    """Return fine stripes, which no blur leaves, of a brightness that tells the second."""
    stripes = np.zeros((240, 320, 3), np.uint8)
    stripes[:, ::4] = stripes[:, 1::4] = 75 + 20 * second
    return stripes


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """Return a bag with a picture at 0, 1 and 2 s, and another at 9 s."""
    with BagWriter(tmp_path / "bag") as writer:
        for second in (0, 1, 2, 9):
            stamp_ns = START_NS + second * NS_PER_S
            tile = cv2.imencode(".jpg", picture(second))[1].tobytes()
            frame = camera_frame(stamp_ns, tile)
            writer.write("/tactful/frames", frame, stamp_ns)
    return tmp_path / "bag"


def shown(stills: BagStills, second: float) -> Pixels:
    still = stills.at(START_NS + round(second * NS_PER_S))
    assert still is not None
    return np.asarray(cv2.imdecode(np.frombuffer(still, np.uint8), cv2.IMREAD_COLOR), np.uint8)


def contrast(part: Pixels) -> float:
    """Return how strong the stripes are."""
    return float(part.std())


def test_a_still_is_the_last_picture_before_its_moment(bag: Path) -> None:
    stills = BagStills(bag, None, shows_faces=True)
    brightness = [shown(stills, second).max() // 20 for second in (0, 0.9, 1.0, 2.9, 9.5)]
    assert brightness == [picture(second).max() // 20 for second in (0, 0, 1, 2, 9)]


def test_a_moment_without_a_picture_near_has_none(bag: Path) -> None:
    stills = BagStills(bag, None, shows_faces=True)
    assert [stills.at(START_NS + second * NS_PER_S) for second in (-5, 6, 60)] == [None, None, None]


def test_the_found_faces_are_blurred_and_the_rest_is_not(bag: Path) -> None:
    still = shown(BagStills(bag, lambda image: [LEFT_HALF]), 1)
    assert contrast(still[:, :120]) < 20
    assert contrast(still[:, 220:]) > 40


def test_a_bag_without_a_camera_has_no_stills(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag"):
        pass
    stills = BagStills(tmp_path / "bag", None)
    assert (stills.topic, stills.at(START_NS)) == (None, None)
