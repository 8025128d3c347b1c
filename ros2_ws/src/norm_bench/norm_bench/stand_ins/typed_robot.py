"""Publish lines that are typed in the terminal as the words of a robot, so that Tactful can be tried without one."""

import os
import select
import sys

from norm_nodes.base.endpoint import EVENTS
from pydantic import Field
from std_msgs.msg import String

from norm_bench.stand_ins.publisher_node import PublisherNode
from norm_core.runtime.config import Config

# How long the thread waits for input before it checks whether to end.
WAIT_S = 0.2
READ_BYTES = 4096


class TypedRobotConfig(Config):
    """The parameters of the node typed_robot."""

    topic: str = Field("/typed_robot/says", min_length=1, description="topic of the words, one String per line")


class TypedRobotNode(PublisherNode[TypedRobotConfig]):
    """Publish each line of the standard input."""

    config_model = TypedRobotConfig

    def __init__(self) -> None:
        super().__init__("typed_robot")

    def open(self) -> None:
        """Advertise the topic."""
        self._words = self.advertise(String, self.config.topic, EVENTS, "the lines that were typed")

    def publish_until_halted(self) -> None:
        """Publish lines until the input ends."""
        buffered = b""
        while not self.halt.is_set():
            ready, _, _ = select.select([sys.stdin], [], [], WAIT_S)
            if not ready:
                continue
            data = os.read(sys.stdin.fileno(), READ_BYTES)
            if not data:
                return
            *lines, buffered = (buffered + data).split(b"\n")
            for line in lines:
                if words := line.decode(errors="replace").strip():
                    self._words.publish(String(data=words))
                    self.health_log.count("lines_published")
