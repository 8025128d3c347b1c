"""What a process takes of the machine, and giving back the memory that loading a model left behind."""

import ctypes
import os
from pathlib import Path

from norm_core.records.record import record

_MS_PER_TICK = 1000 // os.sysconf("SC_CLK_TCK")


@record
class ProcessUsage:
    """The memory and CPU time of a process."""

    process_id: int
    memory_kb: int  # of pages that processes share, its part alone, so that sums are right
    cpu_ms: int  # since the process began


def read_usage(process_id: int | None = None) -> ProcessUsage | None:
    """Read what a process takes, this one by default; None if it has ended or the system does not state it."""
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
