"""What the players of benchmarks share: a node that waits with deadlines, and clear errors."""

import os
import sys
import time
from collections.abc import Callable

import rclpy
from norm_nodes.base.executors import fastest_executor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from norm_bench.drain import DrainClient
from norm_core.runtime.errors import TactfulError

# How long the node spins before a condition is checked again.
SPIN_S = 0.2


class PlayerError(TactfulError, RuntimeError):
    """Nodes were not found, stopped replying or lost messages."""

    exit_code = 1


def run_player(play: Callable[[], None]) -> int:
    """Run a player with ROS set up around it. Prints an error of ours; returns the exit code."""
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        play()
    except TactfulError as error:
        print(f"tactful: {error}", file=sys.stderr)
        return error.exit_code
    finally:
        rclpy.try_shutdown()
    return 0


class Player:
    """A node that publishes and waits, each wait with a deadline."""

    def __init__(self, name: str) -> None:
        self._parent = os.getppid()
        self._node = Node(name, namespace="tactful", enable_rosout=False, start_parameter_services=False)
        self._executor = fastest_executor()
        self._executor.add_node(self._node)
        self._drain_client = DrainClient(self._node)

    def _wait_until(self, condition: Callable[[], bool], within_s: float, event: str) -> None:
        deadline_s = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > deadline_s:
                raise PlayerError(f"waited {within_s:.0f} s in vain for {event}")
            self._check_parent()
            self._executor.spin_once(timeout_sec=SPIN_S)

    def _spin_until(self, due_s: float) -> None:
        while (remaining_s := due_s - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=remaining_s)
        self._check_parent()

    def _check_parent(self) -> None:
        if os.getppid() != self._parent:
            raise PlayerError("the process that started this has ended")
