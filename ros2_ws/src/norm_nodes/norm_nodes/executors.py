"""The executors that a process may spin its nodes with, the fastest first."""

from collections.abc import Callable
from contextlib import suppress

from rclpy.executors import Executor, SingleThreadedExecutor

# The events executor is by far the faster. rclpy declares only the single-threaded one stable, so it is the fallback.
EXECUTORS: dict[str, Callable[[], Executor]] = {}
with suppress(ImportError):  # rclpy before 7.1.4 has none
    from rclpy.experimental import EventsExecutor

    EXECUTORS["events"] = EventsExecutor
EXECUTORS["single"] = SingleThreadedExecutor
FASTEST = next(iter(EXECUTORS))
fastest_executor = EXECUTORS[FASTEST]
