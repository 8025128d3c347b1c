"""React to social errors on ROS, with rclpy and norm_interfaces alone.

eval "$(./tactful env)" && python examples/flag_listener.py

In a second terminal, after the same `eval`, run the monitor and the senses:
python -m norm_nodes.node_host --autostart monitor ears camera
The node prints each flag, and publishes the correction of each new error for a dialogue manager to use.
"""

import signal
import sys
from threading import Event

import rclpy
from norm_interfaces.msg import SocialFlag
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import String

RELIABLE = QoSProfile(depth=50, reliability=ReliabilityPolicy.RELIABLE)
STATES = {
    SocialFlag.STATE_OPENED: "opened",
    SocialFlag.STATE_UPDATED: "updated",
    SocialFlag.STATE_CLOSED: "closed",
    SocialFlag.STATE_WITHDRAWN: "withdrawn",
}


class FlagListener(Node):
    """Print flags, and publish each correction once."""

    def __init__(self) -> None:
        """Subscribe to the flags and advertise the topic of the corrections."""
        super().__init__("flag_listener")
        self._corrected: set[str] = set()
        self._printed: dict[str, str] = {}  # by event
        self._hints = self.create_publisher(String, "dialogue/hint", 10)
        self.create_subscription(SocialFlag, "tactful/flags", self._on_flag, RELIABLE)

    def _on_flag(self, flag: SocialFlag) -> None:
        """Handle one state of an event; all states of an event share its event_id."""
        is_error = flag.polarity == SocialFlag.POLARITY_ERROR
        kind = "error" if is_error else "competence"
        text = f"{kind} {flag.cue_id} ({flag.probability:.2f}): {flag.rationale}"
        if flag.state != SocialFlag.STATE_UPDATED or self._printed.get(flag.event_id) != text:
            print(f"{STATES[flag.state]} {text}", flush=True)
        self._printed[flag.event_id] = text
        is_current = flag.state in {SocialFlag.STATE_OPENED, SocialFlag.STATE_UPDATED}
        if is_error and is_current and flag.event_id not in self._corrected:
            self._corrected.add(flag.event_id)
            self._hints.publish(String(data=flag.correction))


def main() -> int:
    """Print flags until Ctrl-C."""
    ended = Event()
    signal.signal(signal.SIGINT, lambda *_: ended.set())  # a KeyboardInterrupt amid a message's conversion is a crash
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node: Node = FlagListener()
    print(f"listening on {node.resolve_topic_name('tactful/flags')}; Ctrl-C ends", flush=True)
    while not ended.is_set():
        rclpy.spin_once(node, timeout_sec=0.5)
    node.destroy_node()
    rclpy.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
