"""Tick a condition of a behaviour tree: is a social error open? With rclpy and norm_interfaces alone.

eval "$(./tactful env)" && python examples/error_condition.py

In a second terminal, after the same `eval`, run the monitor and the senses:
python -m norm_nodes.node_host --autostart monitor ears camera
The script prints each change of the answer. Import SocialErrorCondition into your own tree.
"""

import math
import signal
import sys
import time
from collections.abc import Callable
from enum import Enum
from threading import Event

import rclpy
from norm_interfaces.msg import MonitorStatus, SocialFlag
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions

RELIABLE = QoSProfile(depth=50, reliability=ReliabilityPolicy.RELIABLE)
LOST_AFTER_S = 5.0  # the monitor sends its status once a second
OPEN = {SocialFlag.STATE_OPENED, SocialFlag.STATE_UPDATED}


class Answer(Enum):
    """The answer of a condition."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class SocialErrorCondition:
    """Whether an error of an attribute is open, and was opened or updated in the last `within_s`.

    An error is open until it is closed or withdrawn, or becomes a competence. Time is that of arrival, so clocks of
    other machines do not matter. While no monitor works, the answer is UNKNOWN.
    """

    def __init__(self, attribute: int | None, within_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        """Take an attribute of SocialFlag, or None for any error."""
        self._attribute, self._within_s, self._now_s = attribute, within_s, now_s
        self._open: dict[str, tuple[float, str]] = {}  # arrival and rationale, by event
        self._monitor, self._heartbeat_s, self._problem = "", -math.inf, ""
        self.reason = ""  # of the last answer

    def subscribe(self, node: Node) -> None:
        """Subscribe a node of the tree's process to the flags and the status."""
        node.create_subscription(SocialFlag, "tactful/flags", self.on_flag, RELIABLE)
        node.create_subscription(MonitorStatus, "tactful/status", self.on_status, RELIABLE)

    def on_flag(self, flag: SocialFlag) -> None:
        """Take one state of an event; all states of an event share its event_id."""
        self._open.pop(flag.event_id, None)
        is_error = flag.polarity == SocialFlag.POLARITY_ERROR and flag.state in OPEN
        if is_error and (self._attribute is None or self._attribute in flag.attributes):
            self._open[flag.event_id] = (self._now_s(), flag.rationale)

    def on_status(self, status: MonitorStatus) -> None:
        """Take a heartbeat of any node; only the monitor's matters."""
        if not status.node.endswith("/monitor"):
            return
        if self._monitor not in {"", status.instance_id}:
            self._open.clear()  # nobody closes the flags of a monitor that ended
        self._monitor, self._heartbeat_s, self._problem = status.instance_id, self._now_s(), ""
        if status.state != MonitorStatus.STATE_ACTIVE or status.health == MonitorStatus.HEALTH_FAILED:
            self._problem = "; ".join(status.reasons) or "the monitor is not active"

    def tick(self) -> Answer:
        """Answer at once, and set the reason."""
        now_s = self._now_s()
        self._open = {event: entry for event, entry in self._open.items() if now_s - entry[0] <= self._within_s}
        is_lost = now_s - self._heartbeat_s > LOST_AFTER_S
        if is_lost or self._problem:
            self.reason = "no status of the monitor arrives; start it" if is_lost else self._problem
            return Answer.UNKNOWN
        self.reason = next((rationale for _, rationale in self._open.values()), "")
        return Answer.YES if self._open else Answer.NO


def main() -> int:
    """Tick the condition and print changes of its answer until Ctrl-C."""
    ended = Event()
    signal.signal(signal.SIGINT, lambda *_: ended.set())  # a KeyboardInterrupt amid a message's conversion is a crash
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = Node("behaviour_tree")
    condition = SocialErrorCondition(SocialFlag.ATTRIBUTE_CONVERSATIONAL_MECHANICS, within_s=30.0)
    condition.subscribe(node)
    before = ""
    while not ended.is_set():
        rclpy.spin_once(node, timeout_sec=0.5)
        answer = condition.tick()
        if answer.value != before:
            print(f"{answer.value}: {condition.reason}" if condition.reason else answer.value, flush=True)
        before = answer.value
    node.destroy_node()
    rclpy.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
