"""Be a robot that talks, sees and hears, and goes wrong on command: each line of the input is JSON that changes it."""

import json
import sys
import time
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import cv2
import numpy as np
from norm_nodes.base.endpoint import EVENTS, SENSOR
from norm_nodes.base.executors import open_observer
from norm_nodes.stand_ins.encounter_player import make_stamped_sound
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CompressedImage
from std_msgs.msg import Bool, String, UInt8MultiArray

from norm_core.records.stamps import split_stamp
from norm_core.runtime.time import s_to_ns

CAMERA, SOUND, HEARD, PERSON_SPEAKS = "/soak/camera", "/soak/sound", "/soak/heard", "/soak/person_speaks"
WORDS, VOICE, CLOCK = "/soak/words", "/soak/voice", "/clock"
# One exchange: the person speaks, the robot speaks into it, the words of both come.
CYCLE_S, ROBOT_FROM_S, PERSON_TO_S, ROBOT_TO_S = 2.0, 0.5, 1.0, 1.7
TICK_S = 0.1
SAMPLES = np.random.default_rng(0).integers(-40, 40, 1600, np.int16).tobytes()  # a tick of a quiet room


class FaultyRobot:
    """Publish until the input ends. `state` holds what commands change."""

    def __init__(self, node: Node) -> None:
        self._node = node
        types = {WORDS: String, VOICE: Bool, HEARD: String, PERSON_SPEAKS: Bool}
        self._to = {topic: node.create_publisher(type_, topic, 10) for topic, type_ in types.items()}
        self._to |= {
            CAMERA: node.create_publisher(CompressedImage, CAMERA, SENSOR),
            SOUND: node.create_publisher(UInt8MultiArray, SOUND, EVENTS),
            CLOCK: node.create_publisher(Clock, CLOCK, 10),
        }
        self.state: dict[str, Any] = {
            "camera": True, "sound": True, "talk": True, "stamps": "now", "offset_s": 0.0, "rate": 1, "width": 64,
            "clock": False, "pause": False,
        }  # fmt: skip
        self._since_ns, self._exchange, self._cycle_s = time.time_ns(), 0, 0.0

    def run(self, commands: "SimpleQueue[str | None]") -> None:
        """Publish at the rate asked for; None among the commands ends it."""
        due_s = time.monotonic()
        while True:
            try:
                line = commands.get(timeout=max(0.0, due_s - time.monotonic()))
            except Empty:
                self._step()
                due_s = max(due_s + TICK_S / self.state["rate"], time.monotonic() - 1.0)
                continue
            if line is None:
                return
            command = json.loads(line)
            if size := command.pop("shout", 0):
                self._to[HEARD].publish(String(data="word " * (size // 5)))
            if "stamps" in command:
                self._since_ns = time.time_ns()
            self.state |= command

    def _step(self) -> None:
        if self.state["pause"]:
            return
        now_ns = time.time_ns() + s_to_ns(self.state["offset_s"])
        stamp_ns = {"now": now_ns, "frozen": self._since_ns, "drifting": (self._since_ns + now_ns) // 2}
        if self.state["clock"]:
            clock = Clock()
            clock.clock.sec, clock.clock.nanosec = split_stamp(now_ns)
            self._to[CLOCK].publish(clock)
        if self.state["camera"]:
            self._to[CAMERA].publish(_picture(stamp_ns[self.state["stamps"]], self.state["width"]))
        if self.state["sound"]:
            self._to[SOUND].publish(make_stamped_sound(SAMPLES, stamp_ns[self.state["stamps"]]))
        if self.state["talk"]:
            self._talk()

    def _talk(self) -> None:
        before_s, self._cycle_s = self._cycle_s, self._cycle_s + TICK_S
        self._to[PERSON_SPEAKS].publish(Bool(data=self._cycle_s < PERSON_TO_S))
        self._to[VOICE].publish(Bool(data=ROBOT_FROM_S <= self._cycle_s < ROBOT_TO_S))
        if before_s < ROBOT_FROM_S <= self._cycle_s:
            self._to[WORDS].publish(String(data=f"Let me tell you the story of room {self._exchange}."))
        if before_s < PERSON_TO_S <= self._cycle_s:
            self._to[HEARD].publish(String(data=f"Where is platform number {self._exchange}, please?"))
        if self._cycle_s >= CYCLE_S:
            self._cycle_s, self._exchange = 0.0, self._exchange + 1


def _picture(stamp_ns: int, width: int) -> CompressedImage:
    image = np.full((width * 3 // 4, width, 3), stamp_ns // s_to_ns(1) % 256, np.uint8)
    picture = CompressedImage(format="jpeg", data=cv2.imencode(".jpg", image)[1].tobytes())
    picture.header.stamp.sec, picture.header.stamp.nanosec = split_stamp(stamp_ns)
    return picture


def main() -> int:
    """Be the robot until the input ends."""
    commands: SimpleQueue[str | None] = SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            commands.put(line)
        commands.put(None)

    Thread(target=read, daemon=True).start()
    with open_observer("faulty_robot") as node:
        FaultyRobot(node).run(commands)
    return 0


if __name__ == "__main__":
    sys.exit(main())
