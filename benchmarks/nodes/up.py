"""Measure `./tactful up simulated`: seconds until all nodes are active, and until each is again after SIGKILL.

Other programs slow the start; the seconds of computing that each node took tell what it costs a machine of its own.
Run it on a ROS domain of its own, a second time for warm caches:
eval "$(./tactful env)"; ROS_DOMAIN_ID=88 python benchmarks/nodes/up.py
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

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


def computing_s(pid: int) -> float:
    """Return the seconds that a process has computed, on all cores together."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print the time of the start, what each node computed in it, and the time after each was killed."""
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tactful_cli", "up", "simulated", "--log", f"{folder}/log"]
        began_s = time.monotonic()
        up = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            assert up.stdout
            print(f"{'from up to all nodes active':<30}{wait_for(ACTIVE, up.stdout) - began_s:5.1f} s")
            for node, pid in hosts(up.pid).items():
                print(f"{node + ' computed':<30}{computing_s(pid):5.1f} s")
            for node, pid in hosts(up.pid).items():
                killed_s = time.monotonic()
                os.kill(pid, signal.SIGKILL)
                print(f"{node + ' after SIGKILL':<30}{wait_for(ACTIVE, up.stdout) - killed_s:5.1f} s")
        finally:
            up.send_signal(signal.SIGINT)
            up.wait()


if __name__ == "__main__":
    main()
