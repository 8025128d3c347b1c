"""Nodes that name a file of offsets publish other stamps, over DDS."""

from pathlib import Path

import pytest

from norm_core.records.messages import from_message
from norm_core.records.speech import RobotSpeech, SpeechEdge
from norm_core.runtime.artefact import write_artefact
from norm_core.runtime.time import NS_PER_MS
from norm_monitor.senses.sensor_offsets import CAMERA, FORMAT, KIND, ROBOT_SPEECH, SensorOffsets
from sim_replays.drivers.node_process import NodeProcess
from tests.norm_monitor.senses.camera_messages import START_NS
from tests.norm_nodes.test_camera_node import TOPIC
from tests.observer import Observer

pytestmark = pytest.mark.ros

EDGES = "/robot/edges"


@pytest.fixture
def offsets(tmp_path: Path) -> str:
    path = tmp_path / "offsets.json"
    made_with = {CAMERA: TOPIC, ROBOT_SPEECH: EDGES}
    artefact = SensorOffsets(
        kind=KIND, format=FORMAT, made_on="2026-11-23", made_with=made_with, fitted_on={}, camera_ms=85.5,
        robot_speech_ms=-140.0,
    )  # fmt: skip
    write_artefact(artefact, path)
    return str(path)


def test_ears_publish_moved_stamps(domain_id: int, observer: Observer, offsets: str) -> None:
    from norm_nodes.convert import record_class, to_ros

    edges = observer.records(RobotSpeech, "robot_speech")
    said = RobotSpeech(stamp_ns=START_NS, speech_id="s", state=SpeechEdge.START, text="Hello")
    with NodeProcess(["ears"], {"ears": {"robot_speech_topic": EDGES, "sensor_offsets": offsets}}, domain_id):
        observer.meet("ears")
        publisher = observer.node.create_publisher(record_class(RobotSpeech), EDGES, 50)
        observer.until(publisher.get_subscription_count, "ears")
        publisher.publish(to_ros(said))
        observer.until(lambda: edges, "the start")
    assert from_message(RobotSpeech, edges[0]).stamp_ns == START_NS - 140 * NS_PER_MS
