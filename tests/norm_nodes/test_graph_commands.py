"""The commands of the graph's stream, to the services of a live monitor."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sim_replays.drivers.node_process import NodeProcess
from tests.observer import Observer

pytestmark = pytest.mark.ros

Stream = subprocess.Popen[str]


@pytest.fixture
def stream(domain_id: int) -> Iterator[Stream]:
    command = [sys.executable, "-m", "norm_nodes.graph_stream", "/tactful", "--commands"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.terminate()


def run(stream: Stream, number: int, **command: Any) -> Any:
    """Send a command and return its reply."""
    assert stream.stdin
    assert stream.stdout
    stream.stdin.write(json.dumps({"id": number, **command}) + "\n")
    stream.stdin.flush()
    for text in stream.stdout:
        line = json.loads(text)
        if line["kind"] == "reply" and line["record"]["id"] == number:
            return line["record"]
    return None


def test_settings_and_verdicts_reach_a_live_monitor(
    tmp_path: Path, domain_id: int, observer: Observer, stream: Stream
) -> None:
    study = {"log": f"{tmp_path}/log", "name": "trial", "session": "s1"}
    parameters = {"windows": {"sources": ["utterances"]}, "study": study}
    verdict: dict[str, Any] = {
        "event_id": "none",
        "reviewer": "Cleo",
        "verdict": "accept",
        "polarity": None,
        "attributes": [],
    }
    assert "no node serves it" in run(stream, 1, get=["fusion.muted"])["problem"]
    with NodeProcess(["monitor"], {"monitor": parameters}, domain_id):
        observer.meet("monitor")
        assert run(stream, 2, set={"fusion.sensitivity": "keen", "fusion.muted": ["greets"]})["problem"] == ""
        assert "is no cue and no attribute" in run(stream, 3, set={"fusion.muted": ["gretes"]})["problem"]
        assert run(stream, 4, get=["fusion.sensitivity", "fusion.muted", "study.log"])["values"] == {
            "fusion.sensitivity": "keen",
            "fusion.muted": ["greets"],
            "study.log": f"{tmp_path}/log",
        }
        assert run(stream, 5, set={"fusion.muted": []})["problem"] == ""
        assert "is none of the events" in run(stream, 6, review={**verdict, "note": ""})["problem"]
        assert "the command is invalid" in run(stream, 7, review={**verdict, "verdict": "maybe", "note": ""})["problem"]
