"""Measure the processor time of each node while a conversation is played in real time.

Two voices talk for 9 s of about 20 s, and the camera sends 10 JPEGs of 640x480 a second. Run it in the environment:
eval "$(./tactful env)"; python benchmarks/nodes/load.py
"""

import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.senses.conversation import AUDIO_TYPE, IMAGE_TOPIC, build_bag  # noqa: E402
from sim_replays.drivers.node_process import NodeProcess  # noqa: E402
from sim_replays.drivers.ros_domain import claimed_domain  # noqa: E402
from tests.foreign_interfaces import NAOQI, build, environment  # noqa: E402

PARAMETERS = {"camera": {"topic": IMAGE_TOPIC}, "ears": {"audio_type": AUDIO_TYPE}, "monitor": {}, "selector": {}}
SETTLED_S, IDLE_SHARE, PATIENCE_S = 5.0, 0.1, 120.0


def cpu_s(process: NodeProcess) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def settle(process: NodeProcess) -> None:
    """Wait until a process has loaded its models, which it does in threads."""
    until_s, before_s = time.monotonic() + PATIENCE_S, -PATIENCE_S
    while time.monotonic() < until_s and (now_s := cpu_s(process)) - before_s > IDLE_SHARE * SETTLED_S:
        before_s = now_s
        time.sleep(SETTLED_S)


def main() -> None:
    """Print a line for each node and one for all."""
    with tempfile.TemporaryDirectory() as name, claimed_domain() as domain_id, ExitStack() as stack:
        folder = Path(name)
        os.environ |= environment(build(folder / "definitions", NAOQI))
        player = {"bag": str(build_bag(folder / "bag")), "wait_for_subscribers_s": 60.0}
        hosts = [
            stack.enter_context(NodeProcess([node], {node: values} if values else None, domain_id))
            for node, values in PARAMETERS.items()
        ]
        for host in hosts:
            settle(host)
        with NodeProcess(["bag_player"], {"bag_player": player}, domain_id) as played:
            before_s, began_s = [cpu_s(host) for host in hosts], time.monotonic()
            played.wait(PATIENCE_S)
            lasted_s = time.monotonic() - began_s
            shares = [(cpu_s(host) - used_s) / lasted_s for host, used_s in zip(hosts, before_s, strict=True)]
        print(f"in {lasted_s:.0f} s, with a load of {os.getloadavg()[0]:.1f}")
        for host, share in zip(hosts, shares, strict=True):
            print(f"{host.nodes[0]}: {share:.1%} of a core")
        print(f"together: {sum(shares):.1%} of a core")


if __name__ == "__main__":
    main()
