"""Host one or more nodes in one process, and end cleanly on SIGINT and SIGTERM."""

import argparse
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any

import rclpy
from rclpy.executors import Executor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from rclpy.utilities import remove_ros_args

from norm_core.engines.engine_pool import EngineLease, EnginePool
from norm_core.records.status import Health
from norm_core.runtime.config import load_yaml
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import WallClock
from norm_nodes import catalogue
from norm_nodes.base.executors import EXECUTORS, FASTEST
from norm_nodes.base.norm_node import NormNode
from norm_nodes.base.parameter_sections import find_misplaced_sections, find_parameter_files, find_robot_wide_parameters
from norm_nodes.catalogue import NODES, describe_unknown, find_mistyped

EXIT_CLEAN = 0
EXIT_NOT_WELL = 1
EXIT_BAD_INPUT = 2
EXIT_SUPERSEDED = 4
MAX_DOMAIN_ID = 232
# How long the nodes are spun before the host checks whether to end.
SPIN_TIMEOUT_S = 0.2
# The same while a model loads.
LOADING_SPIN_S = 0.02
# Settings for glibc's mallopt: keep freed blocks below 32 MB in the process, up to 256 MB in total.
_MALLOC_SETTINGS = ((-3, 32 << 20), (-1, 256 << 20))

# A function that returns the class of a node by its name.
NodeClass = Callable[[str], Callable[[], NormNode[Any]]]


class HostError(TactfulError):
    """A host cannot start or continue; `exit_code` gives the kind of reason."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def main(arguments: Sequence[str] | None = None, *, node_class: NodeClass = catalogue.import_node_class) -> int:
    """Host the nodes that the command line names until a signal arrives; return the exit code.

    `node_class` returns the class of each node. norm_bench passes its own to host subclasses.
    """
    argv = list(sys.argv if arguments is None else ["host", *arguments])
    stop = _StopSignal()
    keep_freed_memory()
    try:
        options = _make_parser().parse_args(_remove_ros_args(argv))
        _check_names(options.nodes)
        _initialise(argv)
        try:
            _run(options, find_parameter_files(argv), stop, node_class)
        finally:
            rclpy.try_shutdown()
    except TactfulError as error:
        print(f"tactful: {error}", file=sys.stderr)
        return error.exit_code
    return EXIT_CLEAN


def keep_freed_memory() -> None:
    """Keep freed memory in the process: to map pages anew for each raw image costs more than to read it."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for name, value in _MALLOC_SETTINGS:
            mallopt(name, value)


class _StopSignal:
    """A flag that the first SIGINT or SIGTERM sets."""

    def __init__(self) -> None:
        self.is_set = False
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, self._on_signal)

    def _on_signal(self, signal_number: int, frame: FrameType | None) -> None:
        self.is_set = True


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="host", description=__doc__)
    parser.add_argument("nodes", nargs="+", metavar="NODE", help=f"one of {', '.join(NODES)}")
    parser.add_argument("--autostart", action="store_true", help="configure and activate the nodes at once")
    parser.add_argument("--parent", type=int, metavar="PID", help="end when this process, which started this one, does")
    parser.add_argument("--executor", choices=sorted(EXECUTORS), default=FASTEST, help="how callbacks are run")
    return parser


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if name not in NODES:
            raise HostError(f"nodes: {describe_unknown(name)}", EXIT_BAD_INPUT)


def _remove_ros_args(argv: list[str]) -> list[str]:
    try:
        return list(remove_ros_args(argv)[1:])
    except Exception as error:  # rclpy raises bare RuntimeErrors and RCLErrors of a private module here
        for file in find_parameter_files(argv):
            load_yaml(file)  # names the fault of a file that ROS refused with the message of a C parser
        problem = str(error).partition(", at /")[0].strip()  # what follows is a line in the source of ROS
        raise HostError(f"--ros-args: the arguments after it cannot be used: {problem}", EXIT_BAD_INPUT) from error


def _initialise(argv: list[str]) -> None:
    domain = os.environ.get("ROS_DOMAIN_ID") or "0"
    if not (domain.isdecimal() and int(domain) <= MAX_DOMAIN_ID):
        raise HostError(f"ROS_DOMAIN_ID is {domain!r}; set it to a number from 0 to {MAX_DOMAIN_ID}", EXIT_BAD_INPUT)
    try:
        rclpy.init(args=argv, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:  # rclpy raises bare RuntimeErrors, and RCLErrors of a private module
        rclpy.try_shutdown()
        text = str(error)
        if "log" in text:
            raise HostError(
                f"ROS cannot open its log folder; set ROS_LOG_DIR to a folder that can be written to ({text})",
                EXIT_BAD_INPUT,
            ) from error
        raise HostError(f"ROS cannot start: {text}", EXIT_BAD_INPUT) from error


def _run(options: argparse.Namespace, files: Sequence[Path], stop: _StopSignal, node_class: NodeClass) -> None:
    executor = EXECUTORS[options.executor]()
    nodes: list[NormNode[Any]] = []
    engines = EnginePool(WallClock())
    NormNode.robot_wide = find_robot_wide_parameters(files, options.nodes)

    def is_wanted() -> bool:
        return rclpy.ok() and not stop.is_set and options.parent in {None, os.getppid()}

    try:
        for name in options.nodes:
            node = node_class(name)()
            node.engines.pool = engines
            nodes.append(node)
            executor.add_node(node)
            _check_alone(name, nodes)
        _state_misplaced_sections(files, nodes)
        if options.autostart:
            for node in nodes:
                _start(node, executor, is_wanted)
        # In one write: without a buffer, what a thread logs would come between the words.
        names = " ".join(node.get_fully_qualified_name() for node in nodes)
        sys.stdout.write(f"{'running' if options.autostart else 'waiting'} {names}\n")
        sys.stdout.flush()
        while is_wanted():
            # One long spin runs many callbacks: each return to this loop costs as much as skipping a frame.
            executor.spin_until_future_complete(Future(), timeout_sec=SPIN_TIMEOUT_S)
            superseded = next((node.heartbeat.superseded_by for node in nodes if node.heartbeat.superseded_by), None)
            if superseded:
                raise HostError(superseded, EXIT_SUPERSEDED)
            if all(node.is_finished() for node in nodes):
                break
        complaints = [
            reason for node in nodes if node.status().health is Health.FAILED for reason in node.status().reasons
        ]
    finally:
        late_complaints = [complaint for node in nodes for complaint in _end(node, executor)]
        for node in nodes:
            node.await_workers()
        executor.shutdown(timeout_sec=1.0)
    if complaints or late_complaints:
        raise HostError("; ".join([*complaints, *late_complaints]), EXIT_NOT_WELL)


def _check_alone(name: str, nodes: Sequence[NormNode[Any]]) -> None:
    """Refuse a second node of the same full name, as `__node:=NAME` renames every node of a process."""
    full_name = nodes[-1].get_fully_qualified_name()
    if full_name in [node.get_fully_qualified_name() for node in nodes[:-1]]:
        raise HostError(
            f"nodes: two nodes of this process would be called {full_name}; name each node once, and give a new name "
            f"to a single one, as -r {name}:__node:=NAME",
            EXIT_BAD_INPUT,
        )


def _state_misplaced_sections(files: Sequence[Path], nodes: Sequence[NormNode[Any]]) -> None:
    by_name = {node.get_fully_qualified_name(): node for node in nodes}
    siblings = {f"{node.get_namespace().rstrip('/')}/{name}" for node in nodes for name in NODES}
    complaints = find_misplaced_sections(files, by_name, siblings)
    for name, node in by_name.items():
        reasons = [*complaints.get(name, ()), *find_mistyped(NormNode.robot_wide, [node.config_model])]
        if reasons:
            node.note_misplaced_sections("; ".join(reasons))


def _end(node: NormNode[Any], executor: Executor) -> list[str]:
    """Stop one node; return its errors instead of raising them, so that the next node is stopped too."""
    try:
        node.end()
    except (TactfulError, OSError) as error:
        return [str(error)]
    finally:
        executor.remove_node(node)
        node.destroy_node()
    return []


def _start(node: NormNode[Any], executor: Executor, is_wanted: Callable[[], bool]) -> None:
    """Activate a node. The other nodes run while its model loads, and a shutdown need not wait for the model."""
    leases: list[EngineLease | None] = []
    loader = Thread(target=lambda: leases.append(node.load_model()), name="load_model", daemon=True)
    loader.start()
    while loader.is_alive() and is_wanted():
        executor.spin_once(timeout_sec=LOADING_SPIN_S)
    if not is_wanted():
        return
    transitions: tuple[Callable[[], object], ...] = (node.trigger_configure, node.trigger_activate)
    try:
        is_active = all(transition() == TransitionCallbackReturn.SUCCESS for transition in transitions)
    finally:
        for lease in filter(None, leases):
            lease.close()
    if not is_active:
        reasons = "; ".join(node.status().reasons)
        raise HostError(f"{node.get_fully_qualified_name()} did not start, because {reasons}", EXIT_BAD_INPUT)


if __name__ == "__main__":
    sys.exit(main())
