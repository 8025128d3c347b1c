"""A node whose model's server is down says so, fails requests at once, and goes on when the server is there."""

from pathlib import Path

import pytest

from tests.norm_core.engines.fake_server import describe_model, free_port, serving
from tests.norm_nodes.test_selector import ask, ready
from tests.observer import Observer

pytestmark = pytest.mark.ros

CANDIDATES = ["Lay the table.", "Wave."]


def test_a_dead_server_is_stated_counted_and_found_again(domain_id: int, observer: Observer, own_models: Path) -> None:
    describe_model(own_models, "lab", f"http://127.0.0.1:{(port := free_port())}/v1")
    statuses = observer.watch_status()

    def reasons() -> str:
        return next((" ".join(s.reasons) for s in reversed(statuses) if s.node == "/tactful/selector"), "")

    with ready({"model": "lab"}, domain_id):
        for _ in range(2):
            ask(observer, candidates=CANDIDATES)
        observer.until(lambda: observer.counted("server_requests_refused") > 0, "the refused requests to be counted")
        observer.until(lambda: "start the server" in reasons(), "the remedy")
        with serving(port) as server:
            observer.until(lambda: "cannot be reached" not in reasons(), "the server to be found")
            refused = observer.counted("server_requests_refused")
            ask(observer, candidates=CANDIDATES)
            assert server.bodies
    assert observer.counted("server_requests_refused") == refused
