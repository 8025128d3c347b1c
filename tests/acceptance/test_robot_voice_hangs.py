"""A driver says that the robot speaks, and never that it has ended: the robot's turn ends nevertheless."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sim_replays.drivers.node_process import NodeProcess
from tests.observer import Observer

pytestmark = pytest.mark.ros

DRIVER = """
import time
import rclpy
from std_msgs.msg import Bool

rclpy.init()
publisher = rclpy.create_node("tts").create_publisher(Bool, "/tts/busy", 10)
while True:
    publisher.publish(Bool(data=True))
    time.sleep(0.1)
"""
START, STOP = 0, 1


@contextmanager
def driver() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", DRIVER])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class Ears:
    """What ears publish of the robot's speech, and what their status says."""

    def __init__(self, observer: Observer) -> None:
        from norm_interfaces.msg import RobotSpeech
        from norm_nodes.endpoint import EVENTS

        self._observer = observer
        self.edges: list[Any] = observer.collect(RobotSpeech, "/tactful/robot_speech", EVENTS)
        observer.watch_status()

    def reach(self, *states: int) -> None:
        self._observer.until(lambda: [edge.state for edge in self.edges] == list(states), f"the states {states}")

    def say(self, words: str) -> None:
        self._observer.until(lambda: words in " ".join(self._observer.statuses[-1].reasons), f"the status: {words}")


def test_speech_of_a_killed_driver_ends_when_it_last_told_of_it(domain_id: int, observer: Observer) -> None:
    from std_msgs.msg import Bool

    ears, said = Ears(observer), observer.collect(Bool, "/tts/busy", 10)
    with NodeProcess(["ears"], {"ears": {"robot_speech_topic": "/tts/busy"}}, domain_id):
        observer.meet("ears")
        with driver() as process:
            ears.reach(START)
            observer.until(lambda: len(said) > 20, "the driver to repeat it")
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed_ns = observer.node.get_clock().now().nanoseconds
            ears.reach(START, STOP)
            ears.say("/tts/busy: nobody publishes it")
        stop = ears.edges[-1]
        assert stop.estimated
        assert stop.header.stamp.sec * 10**9 + stop.header.stamp.nanosec <= killed_ns
        with driver():
            ears.reach(START, STOP, START)
