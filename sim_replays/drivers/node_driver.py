"""Play a bag to the robot's nodes, each host in its own process, and yield their output."""

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
from sim_replays.drivers.node_process import HOST, NodeProcess, claimed_domain, end_process, has_room

END_TIMEOUT_S, LOOK_S = 30.0, 0.2
BEGIN, END = "begin", "end"

# An entry of a node's qos_overrides, for a subscription that keeps every message.
LOSSLESS = {"subscription": {"reliability": "reliable", "history": "keep_all"}}

# The nodes of each process, with the parameters of each node.
Hosts = Sequence[Mapping[str, Mapping[str, Any]]]


class TransportError(TactfulError, RuntimeError):
    """The nodes or the player failed. Earlier answers are kept."""

    exit_code = 1


@record
class NodeOutput:
    """A message on a topic, with the bag position `at_ns` and the time `wall_s` in seconds since the start.

    The last one, on END, is the summary.
    """

    topic: str
    at_ns: int
    wall_s: float
    message: dict[str, Any]


def play_to_nodes(
    bag: Path,
    hosts: Hosts,
    *,
    rate: float = 0.0,
    quiet: bool = False,
    domain_id: int | None = None,
    program: Sequence[str] = HOST,
) -> Iterator[NodeOutput]:
    """Play a bag to the nodes, in lockstep if `rate` is 0. The nodes end after the last message.

    Where it is quiet, the summary alone comes. `program` hosts the nodes.
    """
    with ExitStack() as stack:
        if domain_id is None:
            domain_id = stack.enter_context(claimed_domain())
        started = [NodeProcess(list(host), host, domain_id, program=program) for host in hosts]
        for process in started:
            process.begin()
            stack.push(process)
        for process in started:
            process.await_start()
        names = [name for host in hosts for name in host]
        overrides = [parameters.get("qos_overrides", {}) for host in hosts for parameters in host.values()]
        lossless = [topic for one in overrides for topic, qos in one.items() if qos == LOSSLESS]
        options = [*(["--quiet"] if quiet else []), *(["--roomy"] if has_room() else []), "--lossless", *lossless]
        player = [sys.executable, "-m", "norm_nodes.lockstep_player", str(bag), *names, "--rate", str(rate), *options]
        for line in lines_of(player, domain_id, started):
            yield NodeOutput(**line)


def lines_of(command: Sequence[str], domain_id: int, nodes: Sequence[NodeProcess]) -> Iterator[dict[str, Any]]:
    """Yield the lines that a player prints. Raises TransportError, with all last outputs, where it fails."""
    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain_id)}
    # Its log goes to a file, because an unread pipe would fill and block it.
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as log,
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        ) as driver,
    ):
        assert driver.stdout
        # The middleware takes many seconds to notice a killed node.
        for node in nodes:
            Thread(target=_end_with, args=(driver, node), daemon=True).start()
        try:
            for line in driver.stdout:
                yield json.loads(line)
            if driver.wait(END_TIMEOUT_S):
                log.seek(0)
                said = log.read().strip().splitlines()[-5:]
                ended = [f"{node.exit_message()} and said: {node.last_output()}" for node in nodes]
                raise TransportError("\n".join([*said, *ended]))
        finally:
            end_process(driver, END_TIMEOUT_S)


def _end_with(driver: subprocess.Popen[str], node: NodeProcess) -> None:
    while driver.poll() is None:
        if node.ended.wait(LOOK_S):
            driver.terminate()
            return
