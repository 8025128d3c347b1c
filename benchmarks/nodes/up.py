"""Measure `./tactful up simulated`: seconds until all nodes are active, and until each is again after SIGKILL.

Other programs slow the start; the seconds of computing that each node took tell what it costs a machine of its own.
`./tactful benchmark --only up` runs it.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

from benchmarks.runner import Figure, Report
from norm_core.runtime.node_watch import read_usage
from sim_replays.drivers.node_process import claimed_domain

ACTIVE = "all nodes are active"


def wait_for(text: str, output: IO[str]) -> float:
    """Read lines until one has the text; return when it came."""
    for line in output:
        if text in line:
            return time.monotonic()
    raise SystemExit(f"ended before {text!r} came")


def hosts(pid: int) -> dict[str, int]:
    """Return the process of each node."""
    found = {}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split():
        words = Path(f"/proc/{child}/cmdline").read_text(encoding="utf-8").split("\0")
        if "norm_nodes.node_host" in words:
            found[words[words.index("norm_nodes.node_host") + 1]] = int(child)
    return found


def run(report: Report, *, quick: bool) -> None:
    """Report the time of the start against its computing, and the slowest return of a node that was killed."""
    with tempfile.TemporaryDirectory() as folder, claimed_domain() as domain_id:
        command = [sys.executable, "-m", "tactful_cli", "up", "simulated", "--log", f"{folder}/log"]
        environment = {**os.environ, "ROS_DOMAIN_ID": str(domain_id)}
        began_s = time.monotonic()
        up = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        try:
            assert up.stdout
            took_s = wait_for(ACTIVE, up.stdout) - began_s
            computed_s = {
                node: usage.cpu_ms / 1000 for node, pid in hosts(up.pid).items() if (usage := read_usage(pid))
            }
            ratio = round(took_s / sum(computed_s.values()), 2)
            report.add(Figure("up_active", round(took_s, 1), "s", "what its nodes compute", ratio))
            report.note(computed_s=computed_s)
            back_s = {}
            for node, pid in {} if quick else hosts(up.pid).items():
                killed_s = time.monotonic()
                os.kill(pid, signal.SIGKILL)
                back_s[node] = round(wait_for(ACTIVE, up.stdout) - killed_s, 1)
            if back_s:
                slowest_s = max(back_s.values())
                report.add(Figure("up_after_kill", slowest_s, "s", "the start of all", round(slowest_s / took_s, 2)))
                report.note(after_kill_s=back_s)
        finally:
            up.send_signal(signal.SIGINT)
            up.wait()
