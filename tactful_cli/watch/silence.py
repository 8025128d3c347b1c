"""Say why nothing comes, and what to do."""

import re
import time
from collections.abc import Callable, Iterable

from norm_core.runtime.errors import TactfulError
from norm_core.runtime.program import PROGRAM
from tactful_cli.graph_stream import GraphLine
from tactful_cli.up.profile import NAMESPACE
from tactful_cli.up.ros_tools import node_names

NOTHING_AFTER_S = 10.0


class Silence:
    """Say once where nothing is published, and again after it was."""

    def __init__(self, namespace: str, log: Callable[[str], None]) -> None:
        self._namespace, self._log = namespace, log
        self._since_s, self._is_told = time.monotonic(), False

    def take(self, line: GraphLine | None) -> None:
        """Take a line, or that none came."""
        if line:
            self._since_s, self._is_told = time.monotonic(), False
        elif not self._is_told and time.monotonic() - self._since_s > NOTHING_AFTER_S:
            self._is_told = True
            try:
                remedy = remedy_for(self._namespace, node_names())
            except TactfulError:
                remedy = f"run {PROGRAM} doctor"
            self._log(f"{self._namespace}/*: nothing is published; {remedy}")


def remedy_for(namespace: str, nodes: Iterable[str]) -> str:
    """Return what to do where a namespace is silent while these nodes run."""
    parts = (re.fullmatch(rf"(.*)/{NAMESPACE}/[^/]+", node) for node in nodes)
    robots = sorted({part[1].strip("/") for part in parts if part})
    if namespace.removesuffix(NAMESPACE).strip("/") in robots:
        return f"its nodes run and send nothing; look at the log of {PROGRAM} up"
    if robots:
        options = [f"give --namespace {robot}" if robot else "leave --namespace out" for robot in robots]
        return f"nodes run in another namespace; {' or '.join(options)}"
    return f"no nodes run here; start them with {PROGRAM} up, or check ROS_DOMAIN_ID"
