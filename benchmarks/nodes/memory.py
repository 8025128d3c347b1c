"""Measure what the nodes take in memory once they are active.

A page that processes share counts in equal parts (PSS). `python -m benchmarks --only memory` runs it.
"""

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.runner import Figure, Report
from norm_core.health.node_watch import read_usage
from norm_monitor.replay.node_process import NodeProcess, claimed_domain

SETTLED_S, SETTLED_KB, PATIENCE_S = 5.0, 1024, 120.0
NODES = ("camera", "ears", "people", "monitor", "selector")


def parameters(folder: str) -> dict[str, dict[str, Any]]:
    """Return what makes each node load all it needs: a bag for the recorder, and a type of audio."""
    bag = {"bag": str(Path(folder, "bag")), "topics": ["/none"]}
    return {"bag_recorder": bag, "ears": {"audio_type": "std_msgs/msg/UInt8MultiArray"}}


def settled_mb(process: NodeProcess) -> float:
    """Wait until the memory of a process no longer changes, because models load in threads."""
    before_kb, until_s = 0, time.monotonic() + PATIENCE_S
    while usage := read_usage(process.pid):
        if abs(usage.memory_kb - before_kb) < SETTLED_KB or time.monotonic() > until_s:
            return usage.memory_kb / 1024
        before_kb = usage.memory_kb
        time.sleep(SETTLED_S)
    raise SystemExit(process.last_output())


def hold(groups: Sequence[Sequence[str]]) -> float:
    """Start a process for each group of nodes; return the memory of all in MB."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        domain_id = stack.enter_context(claimed_domain())
        settings = parameters(folder)
        processes = []
        for nodes in groups:
            own = {node: settings[node] for node in nodes if node in settings}
            processes.append(stack.enter_context(NodeProcess(list(nodes), own, domain_id)))
        for process in processes:
            settled_mb(process)
        return sum(map(settled_mb, processes))  # once more: pages are shared with those that came later


def run(report: Report, *, quick: bool) -> None:
    """Report the memory of all roles in a process each, against one process, and of monitor and selector."""
    together_mb, apart_mb = hold([NODES]), hold([[node] for node in NODES])
    report.add(Figure("memory_of_nodes", round(together_mb), "MB", "a process each", round(together_mb / apart_mb, 3)))
    if not quick:
        deciders_mb = hold([["monitor", "selector"]])
        against = "all five, a process each"
        report.add(Figure("memory_of_deciders", round(deciders_mb), "MB", against, round(deciders_mb / apart_mb, 3)))
