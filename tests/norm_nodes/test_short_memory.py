"""A model that runs out of memory at its pictures decides by words, and its node says so with the remedy."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from norm_core.records.outcome import Outcome
from norm_core.records.status import Health
from sim_replays.drivers.node_process import NodeProcess
from tests.action_selector.questions import window
from tests.action_selector.test_models import jpeg
from tests.norm_nodes.test_selector import ask
from tests.observer import Observer

pytestmark = pytest.mark.ros

MANIFEST = """
name: tight
task: vision-language
engine: llama.cpp
source: {{path: weights}}
files: [{{path: model.gguf, sha256: {sha256}, size_bytes: 3}}]
quantization: q4_0
licence: none
"""


def test_a_node_short_of_memory_decides_by_words_and_says_so(
    domain_id: int, observer: Observer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from norm_nodes.convert import record_class, to_ros
    from norm_nodes.endpoint import EVENTS

    (tmp_path / "weights").mkdir()
    (tmp_path / "weights/model.gguf").write_bytes(b"abc")
    (tmp_path / "tight.yaml").write_text(MANIFEST.format(sha256=hashlib.sha256(b"abc").hexdigest()))
    monkeypatch.setenv("TACTFUL_MODELS", str(tmp_path))
    statuses = observer.watch_status()
    parameters = {"selector": {"model": "tight", "when_unsure": "best_effort", "max_frame_age_s": 600.0}}
    host = ("-m", "tests.norm_nodes.short_of_memory")
    with NodeProcess(["selector"], parameters, domain_id, program=host) as process:
        observer.until(lambda: "encoder is ready" in process.last_output(), "the encoder")
        observer.meet("selector")
        now_ns = observer.node.get_clock().now().nanoseconds
        frame = replace(window(jpeg=jpeg()).frames[0], stamp_ns=now_ns)
        taken = observer.counts_of("selector")
        publisher = observer.node.create_publisher(record_class(type(frame)), "/tactful/frames", EVENTS)
        observer.until(publisher.get_subscription_count, "the node to listen")
        publisher.publish(to_ros(frame))
        observer.until(lambda: taken().get("/tactful/frames"), "the node to take the frame")
        decision, _ = ask(observer, candidates=["Stir the soup.", "Lay the table."])
        observer.until(lambda: observer.counted("pictures_withheld"), "the pictures to be counted")
    assert decision.outcome is Outcome.ANSWERED
    assert observer.counted("model_out_of_memory")
    status = next(status for status in reversed(statuses) if status.node == "/tactful/selector" and status.counters)
    assert status.health is Health.DEGRADED
    assert any("it gets words only; stop what else uses the memory" in reason for reason in status.reasons)
