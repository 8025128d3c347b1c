"""The launch file brings its nodes to active. Needs launch, which is not among the wheels."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from norm_core.bags.reader import BagReader
from norm_core.bags.types import make
from norm_core.bags.writer import BagWriter
from sim_replays.drivers.node_process import NodeProcess
from tests.launched import LAUNCH, launched
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.ros


@pytest.mark.launch
def test_the_launch_file_brings_a_recorder_to_active_and_ends_it_clean(domain_id: int, tmp_path: Path) -> None:
    with launched(["bag_recorder"], f"bag:={tmp_path / 'recorded'}"):
        play(words(tmp_path), domain_id)
    assert recorded(tmp_path) == ["hello"]


@pytest.mark.launch
def test_the_launch_testing_scenario_passes(domain_id: int) -> None:
    command = [sys.executable, "-m", "launch_testing.launch_test", str(LAUNCH.parents[1] / "test/test_bringup.py")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_same_scenario_by_processes_alone(domain_id: int, tmp_path: Path) -> None:
    parameters = {"bag_recorder": {"bag": str(tmp_path / "recorded")}}
    with NodeProcess(["bag_recorder"], parameters, domain_id) as recorder:
        play(words(tmp_path), domain_id)
        os.kill(recorder.pid, signal.SIGINT)
        assert recorder.wait(PATIENCE_S) == 0
    assert recorded(tmp_path) == ["hello"]


def words(tmp_path: Path) -> Path:
    path = tmp_path / "words"
    with BagWriter(path) as bag:
        bag.write_message("/words", make("std_msgs/msg/String", {"data": "hello"}), 0)
    return path


def play(bag: Path, domain_id: int) -> None:
    with NodeProcess(["bag_player"], {"bag_player": {"bag": str(bag)}}, domain_id) as player:
        player.wait(PATIENCE_S)


def recorded(tmp_path: Path) -> list[str]:
    with BagReader(tmp_path / "recorded") as bag:
        return [bag.decode(m).data for m in bag.messages() if m.topic == "/words"]
