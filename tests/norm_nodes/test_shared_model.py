"""Nodes that name one model share it; one whose server is down says so, and goes on when the server is there."""

import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from norm_core.records.outcome import Outcome
from norm_monitor.replay.node_process import NodeProcess
from tests.norm_core.engines.fake_server import describe_model, free_port, serving
from tests.norm_nodes.test_monitor_node import TALK, play
from tests.norm_nodes.test_selector import ask, ready
from tests.observer import Observer

pytestmark = pytest.mark.ros


def test_a_model_that_both_name_is_opened_once(domain_id: int, observer: Observer, own_models: Path) -> None:
    observer.watch_status()
    parameters: dict[str, Any] = {
        "monitor": {"windows": {"sources": ["utterances"]}, "judge": {"model": "shared", "calls_per_hour": 3600.0}},
        "selector": {"model": "shared", "when_unsure": "best_effort", "longest_s": 600.0},
    }
    with serving() as server:
        describe_model(own_models, "shared", server.url)
        with NodeProcess(["monitor", "selector"], parameters, domain_id) as process:
            observer.until(lambda: "encoder is ready" in process.last_output(), "the encoder")
            play(observer, TALK)
            observer.until(lambda: server.bodies, "a unit to be asked about")
            decision, _ = ask(observer, candidates=["Stir the soup.", "Lay the table."])
    assert (decision.outcome, decision.provenance.model) == (Outcome.ANSWERED, "shared")
    assert len(server.clients) == 1


# A host whose models take until a file exists to load.
SLOW_HOST = """
import sys, time
from pathlib import Path
from norm_core.engines import engine_pool
from norm_nodes import node_host

def open_slowly(manifest, clock, open=engine_pool.open_engine):
    while not Path(sys.argv[0]).with_name("loaded").exists():
        time.sleep(0.02)
    return open(manifest, clock)

engine_pool.open_engine = open_slowly
sys.exit(node_host.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("executor", ["events", "single"])
def test_nodes_of_a_process_serve_while_a_model_is_loaded(
    domain_id: int, observer: Observer, tmp_path: Path, own_models: Path, executor: str
) -> None:
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState

    def change(transition: int) -> Any:
        client = observer.node.create_client(ChangeState, "/tactful/selector/change_state")
        observer.until(client.service_is_ready, "the selector")
        return client.call_async(ChangeState.Request(transition=Transition(id=transition)))

    program, loaded = tmp_path / "slow.py", tmp_path / "loaded"
    program.write_text(SLOW_HOST)
    statuses = observer.watch_status()
    options = ("--autostart", "--executor", executor)
    with serving() as server, ExitStack() as stack:
        describe_model(own_models, "big", server.url)
        process = NodeProcess(
            ["camera", "selector"], {"selector": {"model": "big"}}, domain_id, options, program=(str(program),)
        )
        process.begin()
        stack.push(process)
        observer.until(lambda: any("big is being loaded" in str(s.reasons) for s in statuses), "a node that loads")
        assert (observer.state_of("camera"), observer.state_of("selector")) == ("active", "unconfigured")
        loaded.touch()
        process.await_start()
        for transition in (Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP):
            future = change(transition)
            observer.until(future.done, "the transition")
        loaded.unlink()
        statuses.clear()
        future = change(Transition.TRANSITION_CONFIGURE)
        observer.until(lambda: any("being loaded" in str(s.reasons) for s in statuses), "a node that loads again")
        assert (observer.state_of("camera"), observer.state_of("selector")) == ("active", "unconfigured")
        assert not future.done()
        loaded.touch()
        observer.until(future.done, "the configuration")
        assert future.result().success
        observer.until(lambda: "being loaded" not in str(statuses[-1].reasons), "a node that has loaded")


def test_process_ends_while_it_loads_a_model(
    domain_id: int, observer: Observer, tmp_path: Path, own_models: Path
) -> None:
    (program := tmp_path / "slow.py").write_text(SLOW_HOST)
    statuses = observer.watch_status()
    describe_model(own_models, "big", f"http://127.0.0.1:{free_port()}/v1")
    process = NodeProcess(["selector"], {"selector": {"model": "big"}}, domain_id, program=(str(program),))
    process.begin()
    try:
        observer.until(lambda: any("being loaded" in str(s.reasons) for s in statuses), "a node that loads")
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        (tmp_path / "loaded").touch()


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
