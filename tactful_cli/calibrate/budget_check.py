"""Play a bag at its own pace to the real nodes, and compare their p95 with the forecast."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from norm_core.bags.reader import BagError, BagReader
from norm_core.records.json_codec import RecordError, from_json
from norm_core.records.record import record
from norm_core.records.status import MonitorStatus
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import ns_to_s
from norm_monitor.senses.microphone.pcm import PcmFormat
from sim_replays.drivers.node_process import NodeProcess
from sim_replays.drivers.ros_domain import claimed_domain
from sim_replays.drivers.session_replay import SessionTopics, topics_of
from tactful_cli.console import err
from tactful_cli.hear import only_audio_topic
from tactful_cli.up.runtime_settings import merged

_NODES = ("camera", "ears", "monitor")
_P95, _COUNT = "latency_p95_us_", "latency_count_"
_HEARTBEATS_S = 2.5  # so that the latest latencies are in a status
_PATIENCE_S = 120.0


@record
class ComparedForecast:
    """A forecast and what the nodes then took."""

    name: str
    forecast_ms: float
    measured_ms: float
    count: int

    @property
    def error(self) -> float:
        """How far the forecast is from the measure, as a share of the measure."""
        return self.forecast_ms / self.measured_ms - 1


def compare(
    bag: Path, parameters: Mapping[str, Mapping[str, Any]], forecast_p95_ms: Mapping[str, float]
) -> tuple[ComparedForecast, ...]:
    """Play the bag to the profile's nodes; raise TactfulError if it holds nothing that they take."""
    with BagReader(bag) as reader:
        bounds_ns = reader.bounds_ns or (0, 0)
        types = {topic.topic: topic.type_name for topic in reader.topics}
        try:
            audio = only_audio_topic(reader, PcmFormat())
        except BagError as error:
            err.print(f"--check: {bag}: no sound is played: {error}", soft_wrap=True)
            audio = ""
    topics = topics_of(bag, audio)
    transport = "raw" if types.get(topics.camera, "").endswith("/Image") else "compressed"
    nodes = {node: _adapted(node, values, topics, transport) for node, values in parameters.items() if node in _NODES}
    nodes = {node: values for node, values in nodes.items() if node != "camera" or topics.camera}
    if not (audio or topics.camera):
        raise TactfulError(f"--check: {bag}: holds neither sound nor pictures; name a bag of a robot's sensors")
    lasts_s = ns_to_s(bounds_ns[1] - bounds_ns[0])
    err.print(f"playing {bag.name} to {', '.join(nodes)} for {lasts_s:.0f} s")
    found = _played(bag, nodes, lasts_s)
    if not found:
        raise TactfulError(f"--check: {bag}: the nodes took nothing of it; correct what they state above")
    compared = [
        ComparedForecast(name=name, forecast_ms=forecast_p95_ms[name], measured_ms=found[name][0], count=found[name][1])
        for name in forecast_p95_ms
        if name in found
    ]
    in_turn = [one for one in compared if one.name != "picture"]  # a turn waits for no picture
    return (*compared, _sum(in_turn)) if in_turn else tuple(compared)


def _sum(parts: Sequence[ComparedForecast]) -> ComparedForecast:
    """Sum what lies between the end of a turn and its flag."""
    return ComparedForecast(
        name="end of a turn to its flag",
        forecast_ms=sum(part.forecast_ms for part in parts),
        measured_ms=sum(part.measured_ms for part in parts),
        count=min(part.count for part in parts),
    )


def _adapted(node: str, values: Mapping[str, Any], topics: SessionTopics, transport: str) -> dict[str, Any]:
    """Return a node's parameters with the topics of the bag."""
    if node == "camera":
        return merged(values, {"topic": topics.camera, "transport": transport})
    if node == "ears":
        return merged(values, {"audio_topic": topics.audio, "audio_type": topics.audio_type})
    return merged(values, {"windows.sources": list(topics.sources)})


def _played(bag: Path, nodes: Mapping[str, Mapping[str, Any]], lasts_s: float) -> dict[str, tuple[float, int]]:
    with claimed_domain() as domain_id, ExitStack() as stack:
        hosts = [NodeProcess([node], {node: values}, domain_id) for node, values in nodes.items()]
        for host in hosts:
            stack.enter_context(host)
        with _statuses(domain_id) as lines:
            player = {"bag": str(bag), "wait_for_subscribers_s": 60.0}
            with NodeProcess(["bag_player"], {"bag_player": player}, domain_id) as playing:
                playing.wait(lasts_s + _PATIENCE_S)
            Event().wait(_HEARTBEATS_S)
            return _latest(lines)


@contextmanager
def _statuses(domain_id: int) -> Iterator[Path]:
    """Write the heartbeats of a domain into a file, one line of JSON each, for the duration of a with statement."""
    with tempfile.TemporaryDirectory(prefix="tactful-") as folder:
        path = Path(folder, "statuses.jsonl")
        command = [sys.executable, "-m", "norm_nodes.status_lines", "/tactful/status"]
        with path.open("wb") as out:
            listener = subprocess.Popen(command, stdout=out, env={**os.environ, "ROS_DOMAIN_ID": str(domain_id)})
        try:
            yield path
        finally:
            listener.terminate()
            listener.wait(_PATIENCE_S)


def _latest(lines: Path) -> dict[str, tuple[float, int]]:
    """Return p95 in ms and its count by part, from the newest status that states them; print what the nodes lack."""
    counts: dict[str, int] = {}
    reasons: dict[str, tuple[str, ...]] = {}
    for line in lines.read_text(encoding="utf-8").splitlines():
        try:
            status = from_json(MonitorStatus, line)
        except RecordError:
            continue  # the last line may be cut
        reasons[status.node] = status.reasons
        counts |= {counter.name: counter.count for counter in status.counters}
    for reason in (reason for node in reasons for reason in reasons[node]):
        err.print(f"--check: {reason}", soft_wrap=True)
    names = [name.removeprefix(_P95) for name in counts if name.startswith(_P95)]
    return {name: (counts[_P95 + name] / 1e3, counts[_COUNT + name]) for name in names}
