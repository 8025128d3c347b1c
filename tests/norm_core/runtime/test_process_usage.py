"""What a process takes, as its status states it."""

import mmap
import os

from norm_core.runtime.node_watch import read_usage


def test_the_memory_of_a_process_is_in_its_usage() -> None:
    before = read_usage()
    with mmap.mmap(-1, 50_000_000) as held:  # not malloc, which may give memory that the process has already
        held[:] = b"\1" * len(held)
        after = read_usage()
    assert before
    assert after
    assert after.process_id == os.getpid()
    assert after.memory_kb - before.memory_kb > 0.9 * 50_000_000 / 1024
    assert after.cpu_ms >= before.cpu_ms
