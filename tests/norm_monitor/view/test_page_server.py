"""The server of the view: whom it refuses."""

import socket
from collections.abc import Iterator

import pytest

from norm_monitor.view.page_server import MAX_BODY_BYTES, PageReply, PageRequest, PageServer
from tests.norm_monitor.view.page_requests import ask, serving
from tests.patience import PATIENCE_S


def answer(request: PageRequest) -> PageReply:
    return PageReply(f"{request.method} {request.path} ".encode() + request.body, "text/plain")


@pytest.fixture
def server() -> Iterator[PageServer]:
    with serving(PageServer("good", answer, link_from="the test", request_s=0.2)) as served:
        yield served


def test_the_holder_of_the_token_is_answered(server: PageServer) -> None:
    assert ask(server.port, "/?token=good") == (200, "GET / ")
    assert ask(server.port, "/a", body="words", X_Token="good") == (200, "POST /a words")


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=bad", "/?token=%C3%A9", "/a", "/a?token=good"])
def test_without_the_token_nothing_is_answered(server: PageServer, path: str) -> None:
    assert ask(server.port, path) == (403, "this token is not valid: use the link that the test printed")


def test_a_script_of_another_site_is_refused(server: PageServer) -> None:
    assert ask(server.port, "/a", X_Token="good", Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(server.port, "/a", body="x", X_Token="good", Sec_Fetch_Site="cross-site")[0] == 403
    assert ask(server.port, "/a", X_Token="good", Sec_Fetch_Site="same-origin")[0] == 200


def test_a_foreign_host_name_is_refused(server: PageServer) -> None:
    assert ask(server.port, "/?token=good", Host="evil.example")[0] == 403
    assert ask(server.port, "/?token=good", Host="localhost:1")[0] == 200


@pytest.mark.parametrize(
    ("size", "status"),
    [(str(MAX_BODY_BYTES + 1), 413), ("9" * 5000, 413), ("-1", 400), ("²", 400), ("", 400), ("1e3", 400)],
)
def test_a_body_of_a_bad_size_is_refused_unread(server: PageServer, size: str, status: int) -> None:
    assert (
        raw(server, f"POST /a HTTP/1.1\r\nHost: localhost\r\nX-Token: good\r\nContent-Length: {size}\r\n\r\n") == status
    )


def test_an_incomplete_body_times_out(server: PageServer) -> None:
    head = "POST /a HTTP/1.1\r\nHost: localhost\r\nX-Token: good\r\nContent-Length: 9\r\n\r\n"
    assert raw(server, head + "slow") == 408
    assert ask(server.port, "/?token=good")[0] == 200


def test_an_incomplete_head_times_out(server: PageServer) -> None:
    assert raw(server, "GET / HTTP/1.1\r\nHost: local") == 403


def test_an_invalid_address_is_refused_without_a_log(server: PageServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert raw(server, "GET http://[::1 HTTP/1.1\r\nHost: localhost\r\n\r\n") == 400
    assert ask(server.port, "/?token=good")[0] == 200
    assert capsys.readouterr().err == ""


def raw(server: PageServer, request: str) -> int:
    """Send bytes that no client library would, and return the status of the answer."""
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE_S) as connection:
        connection.sendall(request.encode("latin-1"))
        return int(connection.recv(100).split()[1])
