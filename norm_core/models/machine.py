"""The free memory of this computer."""

from pathlib import Path


def measure_free_ram_mb() -> float:
    """Return the available memory of the machine, or of the process's container if that is less."""
    meminfo = Path("/proc/meminfo").read_text(encoding="utf-8")
    free_bytes = next(int(line.split()[1]) for line in meminfo.splitlines() if line.startswith("MemAvailable")) * 1024
    group = Path("/sys/fs/cgroup")
    try:
        limit_bytes, used_bytes = (int((group / f"memory.{name}").read_text()) for name in ("max", "current"))
        caches = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        free_bytes = min(free_bytes, limit_bytes - used_bytes + int(caches.get("inactive_file", 0)))
    except (OSError, ValueError):
        pass  # There is no container with a limit.
    return free_bytes / 1e6
