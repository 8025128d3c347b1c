"""Requests to a page's server, as a browser or an attacker would send them."""

import json
from http.client import HTTPConnection

from tests.patience import PATIENCE_S


def ask(port: int, path: str, *, body: object = None, **headers: str) -> tuple[int, str]:
    """Send one request; `_` in a header's name stands for `-`."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    data = body if isinstance(body, str) else None if body is None else json.dumps(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET" if body is None else "POST", path, data, named)
    answer = connection.getresponse()
    return answer.status, answer.read().decode("utf-8", "replace")
