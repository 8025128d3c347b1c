"""ROS domains that no other run on this machine uses meanwhile."""

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from norm_core.error import TactfulError

# Below 102 the ports of a domain stay out of the range that Linux hands out for itself.
DOMAINS = range(50, 102)


class NoDomainError(TactfulError):
    """Every domain set aside for this is in use."""


@contextmanager
def claimed_domain() -> Iterator[int]:
    """A domain held by a lock that ends with the process, however it ends."""
    for domain in DOMAINS:
        with Path(tempfile.gettempdir(), f"tactful-domain-{domain}.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield domain
            return
    raise NoDomainError(f"the ROS domains {DOMAINS.start} to {DOMAINS.stop - 1} are all in use: end another run")
