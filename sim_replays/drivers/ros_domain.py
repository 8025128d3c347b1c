"""Reserve ROS domains that no other run on this machine uses."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from norm_core.runtime.data_files import shipped_file
from norm_core.runtime.errors import TactfulError

# Below 102, a domain's ports stay outside the range of ephemeral ports of Linux.
DOMAINS = range(50, 102)

# Settings of discovery speed and of data in flight.
MIDDLEWARE = shipped_file("sim_replays.drivers", "middleware.xml")
# The first name is for Fast DDS 2, the second for Fast DDS 3.
_PROFILES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")


class NoDomainError(TactfulError):
    """Every reserved domain is in use."""


@contextmanager
def claimed_domain() -> Iterator[int]:
    """Reserve a domain with a lock that ends with the process. Nodes started inside discover each other fast.

    Fast DDS profiles set by the user stay in force.
    """
    with _found_soon():
        yield from _locked_domain()


def _locked_domain() -> Iterator[int]:
    # The one that was left the longest ago, as nodes of a run that was killed take a moment to end.
    for path, domain in sorted(((_lock_file(domain), domain) for domain in DOMAINS), key=lambda pair: _used_s(pair[0])):
        # To read suffices: another user may have made it, and let nobody else write.
        with path.open("r" if path.exists() else "a", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            try:
                yield domain
            finally:
                with suppress(OSError):  # of another user
                    os.utime(path)
            return
    raise NoDomainError(f"the ROS domains {DOMAINS.start} to {DOMAINS.stop - 1} are all in use: end another run")


def _lock_file(domain: int) -> Path:
    return Path(tempfile.gettempdir(), f"tactful-domain-{domain}.lock")


def _used_s(path: Path) -> float:
    return path.stat().st_mtime if path.exists() else 0.0


def has_room() -> bool:
    """Whether megabytes may be in flight at a time, as the profile of a reserved domain allows."""
    return os.environ.get(_PROFILES[0]) == str(MIDDLEWARE)


@contextmanager
def _found_soon() -> Iterator[None]:
    if any(name in os.environ for name in _PROFILES):
        yield
        return
    os.environ.update(dict.fromkeys(_PROFILES, str(MIDDLEWARE)))
    try:
        yield
    finally:
        for name in _PROFILES:
            os.environ.pop(name, None)
