"""Monitor and selector in one process that name one model share it."""

from pathlib import Path
from typing import Any

import pytest

from norm_core.records.outcome import Outcome
from sim_replays.drivers.node_process import NodeProcess
from tests.norm_core.engines.fake_server import describe_model, serving
from tests.norm_nodes.test_monitor_node import TALK, play
from tests.norm_nodes.test_selector import ask
from tests.observer import Observer

pytestmark = pytest.mark.ros


def test_a_model_that_both_name_is_opened_once(
    domain_id: int, observer: Observer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACTFUL_MODELS", str(tmp_path))
    observer.watch_status()
    parameters: dict[str, Any] = {
        "monitor": {"windows": {"sources": ["utterances"]}, "judge": {"model": "shared", "calls_per_hour": 3600.0}},
        "selector": {"model": "shared", "when_unsure": "best_effort", "longest_s": 600.0},
    }
    with serving() as server:
        describe_model(tmp_path, "shared", server.url)
        with NodeProcess(["monitor", "selector"], parameters, domain_id) as process:
            observer.until(lambda: "encoder is ready" in process.last_output(), "the encoder")
            play(observer, TALK)
            observer.until(lambda: server.bodies, "a unit to be asked about")
            decision, _ = ask(observer, candidates=["Stir the soup.", "Lay the table."])
    assert (decision.outcome, decision.provenance.model) == (Outcome.ANSWERED, "shared")
    assert len(server.clients) == 1
