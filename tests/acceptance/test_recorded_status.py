"""A replay of a bag publishes nothing on the live topics of how the nodes of the recording were."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from norm_monitor.replay.node_process import NodeProcess
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.ros

STATUS, WORDS = "/tactful/status", "/words"


@pytest.fixture
def bag(observer: Observer, tmp_path: Path) -> Path:
    """A bag of all topics, recorded beside a camera that gets no picture."""
    from std_msgs.msg import String

    words = observer.node.create_publisher(String, WORDS, 10)
    statuses = observer.watch_status()
    command = [sys.executable, "-m", "tactful_cli", "bag", "record", str(tmp_path / "bag")]
    with (
        NodeProcess(["camera"], {"camera": {"topic": "/eye", "stale_after_s": 0.5}}),
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
    ):
        observer.until(lambda: any("/eye" in reason for status in statuses for reason in status.reasons), "the reason")
        observer.until(words.get_subscription_count, "the recorder")
        words.publish(String(data="hello"))
        seen = len(statuses)
        observer.until(lambda: len(statuses) > seen + 4, "some more statuses")
        process.send_signal(signal.SIGINT)
        stderr = process.communicate(timeout=PATIENCE_S)[1]
    assert process.returncode == 0, stderr
    return tmp_path / "bag"


@pytest.fixture
def camera(domain_id: int) -> Iterator[NodeProcess]:
    with NodeProcess(["camera"], {"camera": {"topic": "/eye", "stale_after_s": 0.0}}, domain_id) as process:
        yield process


def test_our_player_publishes_no_recorded_status(bag: Path, observer: Observer, camera: NodeProcess) -> None:
    from std_msgs.msg import String

    heard = observer.collect(String, WORDS, 10)
    statuses = observer.watch_status()
    observer.meet("camera")
    old = {status.instance_id for status in statuses} - {statuses[-1].instance_id}
    statuses.clear()
    command = [sys.executable, "-m", "tactful_cli", "bag", "play", str(bag), "--rate", "10"]
    played = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert played.returncode == 0, played.stderr
    assert f"{STATUS}: not played" in played.stderr
    observer.until(lambda: heard, "the words")
    observer.until(lambda: any(status.node.endswith("camera") for status in statuses), "a status of the camera")
    assert not old & {status.instance_id for status in statuses}
    assert camera.is_running()
