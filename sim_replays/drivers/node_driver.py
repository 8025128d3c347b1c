"""A bag played to the robot's nodes, each in a process of its own, and what they say as it comes."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import Any

from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from sim_replays.drivers.child_process import end_process
from sim_replays.drivers.node_process import NodeProcess
from sim_replays.drivers.ros_domain import claimed_domain, has_room

END_TIMEOUT_S, LOOK_S = 30.0, 0.2
BEGIN, END = "begin", "end"

# What an entry of a node's qos_overrides says where its subscription is to keep all.
LOSSLESS = {"subscription": {"reliability": "reliable", "history": "keep_all"}}

# Nodes of one process, and the parameters of each.
Hosts = Sequence[Mapping[str, Mapping[str, Any]]]


class TransportError(TactfulError, RuntimeError):
    """The nodes, or what plays the bag to them, did not do their part; what was answered before is kept."""

    exit_code = 1


@record
class NodeOutput:
    """What was published on a topic when the bag had been played up to at_ns, and wall_s seconds since its begin.

    The last one, on END, tells how it went.
    """

    topic: str
    at_ns: int
    wall_s: float
    what: dict[str, Any]


def play_to_nodes(
    bag: Path, hosts: Hosts, *, rate: float = 0.0, quiet: bool = False, domain_id: int | None = None
) -> Iterator[NodeOutput]:
    """Plays bag to the nodes, in lockstep where rate is 0; the nodes end with the last of it."""
    with ExitStack() as stack:
        if domain_id is None:
            domain_id = stack.enter_context(claimed_domain())
        started = [NodeProcess(list(host), host, domain_id) for host in hosts]
        for process in started:
            process.begin()
            stack.push(process)
        for process in started:
            process.await_start()
        for line in lines_of(play_command(bag, hosts, rate=rate, quiet=quiet), domain_id, started):
            yield NodeOutput(**line)


def play_command(bag: Path, hosts: Hosts, *, rate: float = 0.0, quiet: bool = False) -> list[str]:
    """What plays a bag to the nodes of these hosts."""
    names = [name for host in hosts for name in host]
    overrides = [parameters.get("qos_overrides", {}) for host in hosts for parameters in host.values()]
    lossless = [topic for one in overrides for topic, qos in one.items() if qos == LOSSLESS]
    options = [*(["--quiet"] if quiet else []), *(["--roomy"] if has_room() else []), "--lossless", *lossless]
    return [sys.executable, "-m", "norm_nodes.lockstep_player", str(bag), *names, "--rate", str(rate), *options]


def lines_of(command: Sequence[str], domain_id: int, nodes: Sequence[NodeProcess]) -> Iterator[dict[str, Any]]:
    """What a driver of nodes prints, line by line; TransportError with the last words of all where it fails."""
    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain_id)}
    # Its log goes to a file, as a pipe that nobody reads would fill and stop it.
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as log,
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        ) as driver,
    ):
        assert driver.stdout
        # The middleware notices only after many seconds that a node was killed.
        for node in nodes:
            Thread(target=_end_with, args=(driver, node), daemon=True).start()
        try:
            for line in driver.stdout:
                yield json.loads(line)
            if driver.wait(END_TIMEOUT_S):
                log.seek(0)
                said = log.read().strip().splitlines()[-5:]
                ended = [f"{node.exit_message()} and said: {node.said()}" for node in nodes]
                raise TransportError("\n".join([*said, *ended]))
        finally:
            end_process(driver, END_TIMEOUT_S)


def _end_with(driver: subprocess.Popen[str], node: NodeProcess) -> None:
    while driver.poll() is None:
        if node.ended.wait(LOOK_S):
            driver.terminate()
            return
