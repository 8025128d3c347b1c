"""The node's own clock, system or simulated, as the pure packages want it."""

from rclpy.clock import Clock


class RosClock:
    """Nanoseconds since the epoch in ROS time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now_ns(self) -> int:
        return int(self._clock.now().nanoseconds)
