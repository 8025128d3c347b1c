"""The memory and CPU use of processes, and the heartbeats of the nodes in them."""

import ctypes
import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from norm_core.records.record import record
from norm_core.records.status import Counter, MonitorStatus, NodeState
from norm_core.runtime.wording import count_of

_MS_PER_TICK = 1000 // os.sysconf("SC_CLK_TCK")


@record
class ProcessUsage:
    """The memory and CPU time of a process."""

    process_id: int
    memory_kb: int  # of pages that processes share, its part alone, so that sums are right
    cpu_ms: int  # since the process began


def read_usage(process_id: int | None = None, memory_kb: int | None = None) -> ProcessUsage | None:
    """Read the usage of a process, by default this one; None if it has ended or the system does not state it.

    Reading the memory takes milliseconds; `memory_kb` skips it.
    """
    process_id = process_id or os.getpid()
    folder = Path("/proc", str(process_id))
    try:
        if memory_kb is None:
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


# A node whose heartbeat is older has ended.
FORGOTTEN_S = 3.0
READ_EVERY_S = 5.0
MEMORY_EVERY_S = 60.0  # or when the pages of the process have changed by so many
_CHANGED_PAGES = 512
# Half a minute of readings: the nodes of one process read it at different times.
_MAX_READINGS = 7


@record
class _Heartbeat:
    at_s: float
    state: NodeState
    process_id: int | None


class NodeWatch:
    """The latest heartbeats in one namespace. Any thread may call it."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = Lock()
        self._own: ProcessUsage | None = None
        self._read_s = -READ_EVERY_S
        self._memory_read_s, self._pages = -MEMORY_EVERY_S, 0
        self._heartbeats: dict[str, _Heartbeat] = {}
        # The newest readings of each process, with their times.
        self._readings: dict[int, deque[tuple[float, ProcessUsage]]] = {}

    def own_counters(self) -> tuple[Counter, ...]:
        """Return the usage of this process as counters of the status."""
        if self._now_s() >= self._read_s + READ_EVERY_S:
            self._read_own(self._now_s())
        if self._own is None:
            return ()
        return (
            Counter(name="process_id", count=self._own.process_id),
            Counter(name="process_memory_kb", count=self._own.memory_kb),
            Counter(name="process_cpu_ms", count=self._own.cpu_ms),
        )

    def _read_own(self, now_s: float) -> None:
        statm = Path("/proc/self/statm")
        pages = int(statm.read_text(encoding="ascii").split()[1]) if statm.is_file() else 0
        is_known = now_s < self._memory_read_s + MEMORY_EVERY_S and abs(pages - self._pages) < _CHANGED_PAGES
        self._own = read_usage(memory_kb=self._own.memory_kb if self._own and is_known else None)
        self._read_s = now_s
        if not is_known:
            self._memory_read_s, self._pages = now_s, pages

    def take(self, status: MonitorStatus) -> None:
        """Note a heartbeat of any node, or of this one."""
        with self._lock:
            now_s = self._now_s()
            counts = {counter.name: counter.count for counter in status.counters}
            process_id = counts.get("process_id")
            if process_id is not None:
                usage = ProcessUsage(
                    process_id=process_id,
                    memory_kb=counts.get("process_memory_kb", 0),
                    cpu_ms=counts.get("process_cpu_ms", 0),
                )
                readings = self._readings.setdefault(process_id, deque(maxlen=_MAX_READINGS))
                if not readings or now_s >= readings[-1][0] + READ_EVERY_S:
                    readings.append((now_s, usage))
            self._heartbeats[status.node] = _Heartbeat(at_s=now_s, state=status.state, process_id=process_id)
            self._forget_ended()

    def active_nodes(self) -> frozenset[str]:
        """Return the names, without namespace, of the nodes that are active."""
        with self._lock:
            self._forget_ended()
            return frozenset(
                node.rpartition("/")[2] for node, beat in self._heartbeats.items() if beat.state is NodeState.ACTIVE
            )

    def usage_note(self) -> str:
        """Describe the usage of all nodes together; return "" if no process states it."""
        with self._lock:
            self._forget_ended()
            memory_mb = sum(readings[-1][1].memory_kb for readings in self._readings.values()) / 1024
            cores = sum(map(_cores, self._readings.values()))
            nodes, processes = len(self._heartbeats), len(self._readings)
        if not processes:
            return ""
        take = "take" if nodes > 1 else "takes"
        return (
            f"machine: {count_of(nodes, 'node')} in {count_of(processes, 'process', 'processes')} {take} "
            f"{memory_mb:.0f} MB of memory and {100 * cores:.0f} % of a core"
        )

    def _forget_ended(self) -> None:
        since_s = self._now_s() - FORGOTTEN_S
        self._heartbeats = {node: beat for node, beat in self._heartbeats.items() if beat.at_s > since_s}
        running = {beat.process_id for beat in self._heartbeats.values()}
        self._readings = {number: readings for number, readings in self._readings.items() if number in running}


def _cores(readings: deque[tuple[float, ProcessUsage]]) -> float:
    (first_s, first), (last_s, last) = readings[0], readings[-1]
    return (last.cpu_ms - first.cpu_ms) / 1000 / (last_s - first_s) if last_s > first_s else 0.0
