"""Requests to a page's server, as a browser or an attacker would send them."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Protocol, TypeVar

from tests.patience import PATIENCE_S


class Served(Protocol):
    """A server that serves until it is closed."""

    def serve(self) -> None: ...

    def close(self) -> None: ...


Server = TypeVar("Server", bound=Served)


def ask(port: int, path: str, *, body: object = None, **headers: str) -> tuple[int, str]:
    """Send one request; `_` in a header's name stands for `-`."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    data = body if isinstance(body, str) else None if body is None else json.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET" if body is None else "POST", path, data, named)
    answer = connection.getresponse()
    return answer.status, answer.read().decode("utf-8", "replace")


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Serve in a thread, and close."""
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join(PATIENCE_S)
    assert not thread.is_alive()
