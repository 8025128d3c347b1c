"""Host the robot's nodes as a replay needs them: each reports what it has processed, and queries are answered."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from norm_nodes import catalogue, node_host
from norm_nodes.base.norm_node import NormNode

from norm_bench.drain import DrainReporter

# The classes that answer queries. Every other node only gets the reports.
QUERIED = {"monitor": "QueriedMonitor", "selector": "QueriedSelector"}


def node_class(name: str) -> Callable[[], NormNode[Any]]:
    """Return the class of a node, extended for replays."""
    if name in QUERIED:
        queried: Callable[[], NormNode[Any]] = getattr(import_module(f"norm_bench.queried_{name}"), QUERIED[name])
        return queried
    node: Any = catalogue.import_node_class(name)
    reporting: Callable[[], NormNode[Any]] = type(node.__name__, (DrainReporter, node), {})
    return reporting


def main(arguments: Sequence[str] | None = None) -> int:
    """Host the nodes named on the command line, as the robot's own host does."""
    return node_host.main(arguments, node_class=node_class)


if __name__ == "__main__":
    sys.exit(main())
