"""The executors that a process may spin its nodes with, the fastest first."""

from collections.abc import Callable

from rclpy.executors import Executor, SingleThreadedExecutor

# The events executor is by far the faster. rclpy declares only the single-threaded one stable, so it is the fallback.
EXECUTORS: dict[str, Callable[[], Executor]] = {"single": SingleThreadedExecutor}
try:
    from rclpy.experimental import EventsExecutor
except ImportError:  # rclpy before 7.1.4
    fastest_executor: Callable[[], Executor] = SingleThreadedExecutor
else:
    EXECUTORS["events"] = fastest_executor = EventsExecutor
