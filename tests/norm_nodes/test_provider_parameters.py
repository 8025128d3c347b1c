"""Senses that are asked to run on what this machine lacks run, and their status says what is missing."""

from typing import Any

import ctranslate2
import onnxruntime
import pytest

from norm_core.records.status import Health, MonitorStatus, NodeState
from sim_replays.drivers.node_process import NodeProcess
from tests.observer import Observer

pytestmark = [
    pytest.mark.ros,
    pytest.mark.skipif(
        ctranslate2.get_cuda_device_count() > 0 or "CUDAExecutionProvider" in onnxruntime.get_available_providers(),
        reason="this machine has what is asked for",
    ),
]

ASKED: dict[str, dict[str, Any]] = {
    "camera": {"face_providers": ["tensorrt", "cuda", "cpu"]},
    "ears": {"audio_type": "std_msgs/msg/UInt8MultiArray", "whisper_device": "cuda", "voice_providers": ["cuda"]},
}


def test_nodes_run_without_the_gpu_they_are_asked_to_use_and_say_so(observer: Observer, domain_id: int) -> None:
    statuses = observer.watch_status()

    def latest(node: str) -> MonitorStatus | None:
        found = [one for one in statuses if one.node == f"/tactful/{node}" and one.state is NodeState.ACTIVE]
        return found[-1] if found else None

    with NodeProcess(["camera", "ears"], ASKED, domain_id):
        observer.until(lambda: latest("camera") and latest("ears"), "both nodes at work")
    told = {node: status for node in ASKED if (status := latest(node))}
    assert {node: status.health for node, status in told.items()} == dict.fromkeys(ASKED, Health.DEGRADED)
    counts = {node: {one.name: one.count for one in status.counters} for node, status in told.items()}
    assert (counts["camera"]["provider_fallbacks"], counts["ears"]["provider_fallbacks"]) == (4, 2)
    faces, ears = " ".join(told["camera"].reasons), " ".join(told["ears"].reasons)
    for provider in ("TensorrtExecutionProvider", "CUDAExecutionProvider"):
        assert f"faces: {provider} does not run the model" in faces
    assert "setup gpu" in faces
    assert "voice activity: CUDAExecutionProvider does not run the model" in ears
    assert "speech recognition: cuda does not run the model" in ears
    assert "change whisper_device of ears" in ears
