"""Show open flags over people's heads in RViz.

eval "$(./tactful env)" && python examples/flag_markers.py

It needs `visualization_msgs` (`pip install "ros-jazzy-visualization-msgs>=5.3,<6"` or apt), and the nodes `monitor` and
`people`. Add a display of the MarkerArray on `/tactful/markers`. People stand where tf has the frame `person_ID` of
REP-155. Flags of nobody whom the robot tracks stand over the robot.
"""

import signal
import sys
import textwrap
from collections import defaultdict
from threading import Event

import rclpy
from norm_interfaces.msg import Presence, SocialFlag
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray  # type: ignore[import-not-found, unused-ignore]

RELIABLE = QoSProfile(depth=50, reliability=ReliabilityPolicy.RELIABLE)
OPEN = {SocialFlag.STATE_OPENED, SocialFlag.STATE_UPDATED}
ROBOT_FRAME = "base_link"
ABOVE_M = {True: 1.8, False: 0.4}  # over the ground below the robot, and over a person's head
MAX_SHOWN = Duration(seconds=60)  # as nobody closes the flags of a monitor that ended
RED, GREEN = ColorRGBA(r=1.0, g=0.3, b=0.2, a=1.0), ColorRGBA(r=0.3, g=0.9, b=0.3, a=1.0)


class FlagMarkers(Node):
    """Publish one text for each person with open flags."""

    def __init__(self) -> None:
        """Subscribe to flags and presence, and advertise the markers."""
        super().__init__("flag_markers")
        self._open: dict[str, SocialFlag] = {}  # by event
        self._frames: dict[str, str] = {}  # of the tracked persons
        self._ids: dict[str, int] = {}  # of the markers, by frame
        self._markers = self.create_publisher(MarkerArray, "tactful/markers", RELIABLE)
        self.create_subscription(Presence, "tactful/presence", self._on_presence, RELIABLE)
        self.create_subscription(SocialFlag, "tactful/flags", self._on_flag, RELIABLE)

    def _on_presence(self, presence: Presence) -> None:
        self._frames = {person.person_id: f"person_{person.person_id}" for person in presence.persons}

    def _on_flag(self, flag: SocialFlag) -> None:
        """Handle one state of an event; all states of an event share its event_id."""
        self._open.pop(flag.event_id, None)
        if flag.state in OPEN:
            self._open[flag.event_id] = flag
        by_frame: defaultdict[str, list[SocialFlag]] = defaultdict(list)
        for each in self._open.values():
            by_frame[self._frames.get(each.person_id, ROBOT_FRAME)].append(each)
        for frame in by_frame:
            self._ids.setdefault(frame, len(self._ids))
        self._markers.publish(MarkerArray(markers=[self._mark(frame, by_frame[frame]) for frame in self._ids]))

    def _mark(self, frame: str, flags: list[SocialFlag]) -> Marker:
        marker = Marker(ns="tactful", id=self._ids[frame], action=Marker.ADD if flags else Marker.DELETE)
        marker.header.frame_id = frame  # without a stamp, so RViz takes the latest transform
        marker.type, marker.frame_locked, marker.lifetime = Marker.TEXT_VIEW_FACING, True, MAX_SHOWN.to_msg()
        marker.scale.z, marker.pose.position.z = 0.1, ABOVE_M[frame == ROBOT_FRAME]
        marker.color = RED if any(flag.polarity == SocialFlag.POLARITY_ERROR for flag in flags) else GREEN
        marker.text = "\n".join(textwrap.fill(flag.rationale, 40) for flag in flags)
        return marker


def main() -> int:
    """Publish markers until Ctrl-C."""
    ended = Event()
    signal.signal(signal.SIGINT, lambda *_: ended.set())  # a KeyboardInterrupt amid a message's conversion is a crash
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node: Node = FlagMarkers()
    print(f"publishing {node.resolve_topic_name('tactful/markers')}; Ctrl-C ends", flush=True)
    while not ended.is_set():
        rclpy.spin_once(node, timeout_sec=0.5)
    node.destroy_node()
    rclpy.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
