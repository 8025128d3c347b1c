"""Measure the memory of the nodes once they are active.

Processes share a page of memory in equal parts (PSS). `python -m benchmarks memory` runs it.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from benchmarks.figure import Figure
from norm_core.health.node_watch import read_usage
from norm_monitor.replay.node_process import NodeProcess, NodeProcessError, claim_domain

# The memory of a process is settled if it changes by less than this in one pause.
MAX_CHANGE_KB = 1024
PAUSE_S = 5.0
TIMEOUT_S = 120.0
NODES = ("camera", "ears", "people", "monitor", "selector")
# Without a type of audio, ears loads no models.
PARAMETERS = {"ears": {"audio_type": "std_msgs/msg/UInt8MultiArray"}}


def wait_for_memory_mb(process: NodeProcess) -> float:
    """Return the memory of a process once it no longer changes, because models load in threads."""
    before_kb = 0
    end_s = time.monotonic() + TIMEOUT_S
    while usage := read_usage(process.pid):
        if abs(usage.memory_kb - before_kb) < MAX_CHANGE_KB or time.monotonic() > end_s:
            return usage.memory_kb / 1024
        before_kb = usage.memory_kb
        time.sleep(PAUSE_S)
    raise NodeProcessError(process.last_output())


def measure_mb(groups: Sequence[Sequence[str]]) -> float:
    """Start a process for each group of nodes; return the memory of all in MB."""
    with ExitStack() as stack:
        domain_id = stack.enter_context(claim_domain())
        processes = []
        for nodes in groups:
            parameters = {node: PARAMETERS[node] for node in nodes if node in PARAMETERS}
            processes.append(stack.enter_context(NodeProcess(list(nodes), parameters, domain_id)))
        for process in processes:
            wait_for_memory_mb(process)
        # Measured again, because processes that started later share pages with the earlier ones.
        return sum(map(wait_for_memory_mb, processes))


def measure() -> Iterator[Figure]:
    """Measure the memory of all nodes in one process against a process each, and of monitor and selector."""
    together_mb = measure_mb([NODES])
    apart_mb = measure_mb([[node] for node in NODES])
    yield Figure("memory_of_nodes", round(together_mb), "MB", "a process each", round(together_mb / apart_mb, 3))
    pair_mb = measure_mb([["monitor", "selector"]])
    against = "all five, a process each"
    yield Figure("memory_of_deciders", round(pair_mb), "MB", against, round(pair_mb / apart_mb, 3))
