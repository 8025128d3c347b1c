"""Adapt the node's clock, system or simulated, to the interface of the pure packages."""

from rclpy.clock import Clock


class RosClock:
    """Read ROS time in nanoseconds since the epoch."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now_ns(self) -> int:
        """Return the node's time, which is simulated under use_sim_time."""
        return int(self._clock.now().nanoseconds)
