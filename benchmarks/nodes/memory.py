"""Measure what the nodes take in memory once they are active, by process and by what is mapped.

A page that processes share counts in equal parts (PSS). `./tactful benchmark --only memory` runs it.
"""

import re
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.runner import Figure, Report
from norm_core.runtime.process_usage import read_usage
from sim_replays.drivers.node_process import NodeProcess
from sim_replays.drivers.ros_domain import claimed_domain

SETTLED_S, SETTLED_KB, PATIENCE_S = 5.0, 1024, 120.0
SHOWN = 8
NODES = ("camera", "ears", "people", "monitor", "selector")
_MAPPING = re.compile(r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+\s*(.*)$")


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


def by_mapping(process: NodeProcess) -> Counter[str]:
    """Return the kilobytes of each mapped file, and of memory without a file."""
    held: Counter[str] = Counter()
    name = ""
    for line in Path("/proc", str(process.pid), "smaps").read_text(encoding="utf-8").splitlines():
        if found := _MAPPING.match(line):
            package = re.search(r"site-packages/([^/]+)", found[1])
            name = package[1] if package else Path(found[1]).name or "without a file"
        elif line.startswith("Pss:"):
            held["without a file" if name == "[heap]" else name] += int(line.split()[1])
    return held


def hold(groups: Sequence[Sequence[str]]) -> tuple[float, dict[str, float]]:
    """Start a process for each group of nodes; return the memory of all in MB, and what takes most."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        domain_id = stack.enter_context(claimed_domain())
        given = parameters(folder)
        processes = []
        for nodes in groups:
            own = {node: given[node] for node in nodes if node in given}
            processes.append(stack.enter_context(NodeProcess(list(nodes), own, domain_id)))
        all_mb = sum(settled_mb(process) for process in processes)
        held = sum(map(by_mapping, processes), Counter[str]())
    return all_mb, {name: round(kb / 1024) for name, kb in held.most_common(SHOWN)}


def run(report: Report, *, quick: bool) -> None:
    """Report the memory of all roles in a process each, against one process, and of monitor and selector."""
    together_mb, held = hold([NODES])
    apart_mb, _ = hold([[node] for node in NODES])
    report.add(Figure("memory_of_nodes", round(together_mb), "MB", "a process each", round(together_mb / apart_mb, 3)))
    if not quick:
        report.add(Figure("memory_of_deciders", round(hold([["monitor", "selector"]])[0]), "MB"))
    report.note(in_one_process_mb=held)
