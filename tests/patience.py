"""How long a test waits for what must happen: a guard against hangs, never a measure of speed."""

import os
import time
from collections.abc import Callable

PATIENCE_S = 600.0


def comes_true(condition: Callable[[], object]) -> bool:
    """Wait until a condition holds, at most PATIENCE_S; return whether it does."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < deadline_s:
        time.sleep(0.05)
    return bool(condition())


def ends_in_time(pid: int) -> bool:
    """Wait for another process to end, at most PATIENCE_S; return whether it did."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
