"""The executors that may spin the nodes of a process, the fastest first; and a node that only observes the graph."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import rclpy
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.experimental import EventsExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

# The events executor is by far the faster. rclpy declares only the single-threaded one stable, so it is the fallback.
EXECUTORS: dict[str, Callable[[], Executor]] = {"events": EventsExecutor, "single": SingleThreadedExecutor}
FASTEST = next(iter(EXECUTORS))
fastest_executor = EXECUTORS[FASTEST]


@contextmanager
def open_observer(name: str) -> Iterator[Node]:
    """Yield a node without log topic and parameter services, with ROS set up around it."""
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    try:
        yield Node(f"{name}_{os.getpid()}", enable_rosout=False, start_parameter_services=False)
    finally:
        rclpy.try_shutdown()
