"""Measure what the nodes take in memory once they are active, by process and by what is mapped.

Each argument is one process, whose nodes are joined by +. A page that processes share counts in equal parts (PSS). Run
it on a ROS domain of its own:
eval "$(./tactful env)"; ROS_DOMAIN_ID=87 python benchmarks/nodes/memory.py camera ears people monitor selector
"""

import re
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from norm_core.runtime.process_usage import read_usage
from sim_replays.drivers.node_process import NodeProcess

SETTLED_S, SETTLED_KB, PATIENCE_S = 5.0, 1024, 120.0
SHOWN = 8
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


def main() -> None:
    """Print a line for each process, one for all, and what takes most."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        given = parameters(folder)
        processes = []
        for group in sys.argv[1:]:
            nodes = group.split("+")
            own = {node: given[node] for node in nodes if node in given}
            processes.append(stack.enter_context(NodeProcess(nodes, own)))
        for process in processes:
            settled_mb(process)
        all_mb, held = 0.0, Counter[str]()
        for process in processes:
            usage = read_usage(process.pid)
            assert usage
            all_mb += usage.memory_kb / 1024
            held += by_mapping(process)
            print(f"{'+'.join(process.nodes):<45}{usage.memory_kb / 1024:6.0f} MB")
        print(f"{f'{len(processes)} processes':<45}{all_mb:6.0f} MB")
        print("of it:", ", ".join(f"{name} {kb / 1024:.0f}" for name, kb in held.most_common(SHOWN)))


if __name__ == "__main__":
    main()
