"""The memory and CPU use of processes, and which nodes send heartbeats as active."""

import ctypes
import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from norm_core.records.record import record
from norm_core.records.status import Counter, MonitorStatus, NodeState

# A node whose heartbeat is older has ended.
FORGOTTEN_S = 3.0
# How often the usage of this process is read, which takes milliseconds.
READ_EVERY_S = 10.0
_MS_PER_TICK = 1000 // os.sysconf("SC_CLK_TCK")


@record
class ProcessUsage:
    """The memory and CPU time of a process."""

    process_id: int
    memory_kb: int  # of pages that processes share, its part alone, so that sums are right
    cpu_ms: int  # since the process began


def read_usage(process_id: int | None = None) -> ProcessUsage | None:
    """Read the usage of a process, by default this one; None if it has ended or the system does not state it."""
    process_id = process_id or os.getpid()
    folder = Path("/proc", str(process_id))
    try:
        lines = (folder / "smaps_rollup").read_text(encoding="ascii").splitlines()
        memory_kb = next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        # The name, which may hold spaces, ends at the last parenthesis.
        times = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (OSError, StopIteration):
        return None
    return ProcessUsage(
        process_id=process_id, memory_kb=memory_kb, cpu_ms=(int(times[11]) + int(times[12])) * _MS_PER_TICK
    )


def release_freed_memory() -> None:
    """Return freed memory to the system. A model takes up to twice its size while it loads."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@record
class _Heartbeat:
    arrived_s: float
    state: NodeState


class NodeWatch:
    """The latest heartbeats in one namespace, and the usage of this process. Any thread may call it."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = Lock()
        self._own: ProcessUsage | None = None
        self._read_s = -READ_EVERY_S
        self._heartbeats: dict[str, _Heartbeat] = {}

    def count_own_usage(self) -> tuple[Counter, ...]:
        """Return the usage of this process as counters of the status."""
        now_s = self._now_s()
        if now_s >= self._read_s + READ_EVERY_S:
            self._own = read_usage()
            self._read_s = now_s
        if self._own is None:
            return ()
        return (
            Counter(name="process_id", count=self._own.process_id),
            Counter(name="process_memory_kb", count=self._own.memory_kb),
            Counter(name="process_cpu_ms", count=self._own.cpu_ms),
        )

    def add_heartbeat(self, status: MonitorStatus) -> None:
        """Note a heartbeat of any node, or of this one."""
        with self._lock:
            self._heartbeats[status.node] = _Heartbeat(arrived_s=self._now_s(), state=status.state)

    def active_nodes(self) -> frozenset[str]:
        """Return the names, without namespace, of the nodes that are active."""
        with self._lock:
            since_s = self._now_s() - FORGOTTEN_S
            self._heartbeats = {node: beat for node, beat in self._heartbeats.items() if beat.arrived_s > since_s}
            return frozenset(
                node.rpartition("/")[2] for node, beat in self._heartbeats.items() if beat.state is NodeState.ACTIVE
            )
