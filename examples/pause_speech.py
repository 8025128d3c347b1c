"""Pause your robot's speech during a major error, with rclpy and std_msgs alone.

eval "$(./tactful env)" && python examples/pause_speech.py

In a second terminal, after the same `eval`, run the monitor and the senses:
python -m norm_nodes.node_host --autostart monitor ears camera
Tactful only publishes /tactful/attention. This node is yours: it turns attention into /speech/pause, twice a second.
The pause ends with the error, after LONGEST_S, or when the monitor is lost: a robot never stays silent for it.
"""

import math
import signal
import sys
import time
from threading import Event

import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import Bool

EVERY_S = 0.5
LOST_AFTER_S = 2.0  # an active monitor publishes attention twice a second
LONGEST_S = 10.0


class SpeechPauser(Node):
    """Publish whether your speech controller is to pause before its next sentence."""

    def __init__(self) -> None:
        """Subscribe to the attention and advertise the pause."""
        super().__init__("speech_pauser")
        self._arrived_s, self._attentive_since_s = -math.inf, math.inf
        self._is_paused = False
        self._pause = self.create_publisher(Bool, "speech/pause", 10)
        self.create_subscription(Bool, "tactful/attention", self._on_attention, 10)
        self.create_timer(EVERY_S, self._publish_pause)

    def _on_attention(self, message: Bool) -> None:
        """Note when attention began; infinity stands for no attention."""
        self._arrived_s = time.monotonic()
        self._attentive_since_s = min(self._attentive_since_s, self._arrived_s) if message.data else math.inf

    def _publish_pause(self) -> None:
        """Pause only while the monitor is there, and never for long."""
        now_s = time.monotonic()
        if now_s - self._arrived_s > LOST_AFTER_S:
            self._attentive_since_s = math.inf
        is_paused = 0 <= now_s - self._attentive_since_s < LONGEST_S
        if is_paused != self._is_paused:
            print("pause" if is_paused else "go on", flush=True)
        self._is_paused = is_paused
        self._pause.publish(Bool(data=is_paused))


def main() -> int:
    """Publish the pause until Ctrl-C."""
    ended = Event()
    signal.signal(signal.SIGINT, lambda *_: ended.set())  # a KeyboardInterrupt amid a message's conversion is a crash
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node: Node = SpeechPauser()
    print(f"listening on {node.resolve_topic_name('tactful/attention')}; Ctrl-C ends", flush=True)
    while not ended.is_set():
        rclpy.spin_once(node, timeout_sec=0.5)
    node.destroy_node()
    rclpy.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
