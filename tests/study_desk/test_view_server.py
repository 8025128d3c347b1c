"""The view's server: whom it answers, and with what."""

import json
import threading
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from norm_core.runtime.time import NS_PER_MS, NS_PER_S
from study_desk.view.timeline import SessionTimeline
from study_desk.view.view_server import ViewServer
from tests.patience import PATIENCE_S
from tests.study_desk.page_requests import ask

START_NS = 1_000 * NS_PER_S


def still_at(stamp_ns: int) -> bytes | None:
    """Return a picture of the first second alone."""
    since_ms = (stamp_ns - START_NS) // NS_PER_MS
    return f"picture of {since_ms} ms".encode() if since_ms < 1_000 else None


@pytest.fixture
def timeline() -> SessionTimeline:
    return SessionTimeline("secret_bag", START_NS)


@pytest.fixture
def server(timeline: SessionTimeline) -> Iterator[ViewServer]:
    served = ViewServer(timeline, still_at)
    thread = threading.Thread(target=served.serve)
    thread.start()
    yield served
    served.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def token_of(server: ViewServer) -> str:
    return parse_qs(urlsplit(server.url).query)["token"][0]


@pytest.mark.parametrize("path", ["/", "/?token=wrong", "/changes?since=0", "/still?at=0"])
def test_without_its_token_nothing_of_the_bag_is_told(server: ViewServer, path: str) -> None:
    status, text = ask(server.port, path)
    assert status == 403
    assert "secret_bag" not in text
    assert "picture" not in text


@pytest.mark.parametrize("path", ["/changes?since=0", "/still?at=0"])
def test_another_site_is_refused_even_with_the_token(server: ViewServer, path: str) -> None:
    token = token_of(server)
    assert ask(server.port, path, X_Token=token, Host="evil.example")[0] == 403
    assert ask(server.port, path, X_Token=token, Sec_Fetch_Site="cross-site")[0] == 403


def test_its_token_opens_the_page_and_its_stills(server: ViewServer, timeline: SessionTimeline) -> None:
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
def test_a_request_that_makes_no_sense_is_refused(server: ViewServer, path: str, status: int) -> None:
    assert ask(server.port, path.replace("²", "%C2%B2"), X_Token=token_of(server))[0] == status
