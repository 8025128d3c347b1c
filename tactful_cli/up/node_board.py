"""What is known of each node from its heartbeats, and the lines about it for a person."""

from collections.abc import Iterable
from dataclasses import replace

from norm_core.records.record import record
from norm_core.records.status import MonitorStatus, NodeState
from norm_core.runtime.wording import count_of
from tactful_cli.lasting_reasons import LastingReasons

# A node sends one heartbeat a second.
SILENT_AFTER_S = 3.0
# Length of silence that means that the process of a node hangs; it is then killed.
HANGS_AFTER_S = 30.0
# If nothing looks at the board for so long, this process itself stood still.
STOOD_STILL_S = 10.0
# The graph is settled when nothing has changed for so long. Discovery takes up to three seconds.
SETTLED_AFTER_S = 3.0
# Time after which the graph counts as settled even if it changes.
MAX_UNSETTLED_S = 10.0
SILENCE = f"no heartbeat came for {SILENT_AFTER_S:.0f} s; check the load of the machine, or start up again"


@record
class NodeView:
    """One node: when its process was launched, and its last heartbeat or why its process ended."""

    launched_ns: int = 0
    status: MonitorStatus | None = None
    problem: str = ""
    restarts: int = 0
    heartbeat_s: float = 0.0

    @property
    def is_active(self) -> bool:
        """Whether the node is active."""
        return not self.problem and self.status is not None and self.status.state is NodeState.ACTIVE

    @property
    def missing(self) -> tuple[str, ...]:
        """What the node lacks."""
        if self.problem:
            return (self.problem,)
        return self.status.reasons if self.status else ("has sent no heartbeat yet",)


class NodeBoard:
    """The nodes of a profile by name. Methods that take news return the lines to print."""

    def __init__(self, nodes: Iterable[str], namespace: str) -> None:
        self.nodes = {node: NodeView() for node in nodes}
        self._prefix = f"{namespace}/"
        self._reasons = LastingReasons()
        self._silent: set[str] = set()
        self._all_were_active = False
        self._missing: list[tuple[str, ...]] = []
        # When what is missing changed last.
        self._changed_s = 0.0
        # When the state of a node was last unknown.
        self._unknown_s = 0.0
        # When `take_time` was called last.
        self._looked_s = 0.0
        # Whether the state of every node is known and discovery is over.
        self.is_settled = False

    @property
    def all_active(self) -> bool:
        """Whether every node is active."""
        return all(view.is_active for view in self.nodes.values())

    def take_launch(self, nodes: Iterable[str], launched_ns: int, restarts: int) -> None:
        """Note that the process of some nodes was launched. Older heartbeats are ignored from now on."""
        for node in nodes:
            self.nodes[node] = NodeView(launched_ns=launched_ns, restarts=restarts, problem="")

    def take_end(self, nodes: Iterable[str], problem: str) -> None:
        """Note that the process of some nodes ended."""
        for node in nodes:
            self.nodes[node] = NodeView(problem=problem, restarts=self.nodes[node].restarts)
        self._all_were_active = False

    def take_status(self, status: MonitorStatus, now_s: float) -> list[str]:
        """Take a heartbeat. Heartbeats of a process that has ended are ignored."""
        node = status.node.removeprefix(self._prefix)
        view = self.nodes.get(node)
        if view is None or view.problem or status.started_ns < view.launched_ns:
            return []
        before = view
        self._silent.discard(node)
        view = NodeView(launched_ns=view.launched_ns, status=status, restarts=view.restarts, heartbeat_s=now_s)
        self.nodes[node] = view
        lines: list[str] = []
        if before.is_active and not view.is_active:
            lines.append(f"{node}: is {status.state}; its lifecycle was changed from outside")
            self._all_were_active = False
        if view.is_active and not before.is_active and view.restarts:
            lines.append(f"{node}: is active again, after {count_of(view.restarts, 'restart')}")
        if self._all_were_active and self.is_settled:
            new, gone = self._reasons.update(node, status.reasons, now_s)
            lines += [f"{node}: {reason.removeprefix(f'{node}: ')}" for reason in new]
            lines += [f"{node}: no longer: {reason.removeprefix(f'{node}: ')}" for reason in gone]
            return lines
        self._reasons.accept(node, status.reasons)
        if self.all_active and not self._all_were_active:
            self._all_were_active = True
            lines.append("all nodes are active")
        return lines

    def take_time(self, now_s: float) -> list[str]:
        """Note that time passed: the graph settles, and active nodes may fall silent. Each silence has one line."""
        self._settle(now_s)
        if now_s - self._looked_s > STOOD_STILL_S:
            # Heartbeats may wait unread.
            self.restart_silences(now_s)
        self._looked_s = now_s
        silent = self.find_silent(now_s, SILENT_AFTER_S) - self._silent
        self._silent |= silent
        return [f"{name}: {SILENCE}" for name in sorted(silent)]

    def restart_silences(self, now_s: float) -> None:
        """Count every silence from now on, because until now no heartbeat could be read."""
        for name, view in self.nodes.items():
            if view.is_active:
                self.nodes[name] = replace(view, heartbeat_s=now_s)

    def find_silent(self, now_s: float, after_s: float) -> set[str]:
        """Find the active nodes without a heartbeat for `after_s`."""
        return {name for name, view in self.nodes.items() if view.is_active and now_s - view.heartbeat_s > after_s}

    def _settle(self, now_s: float) -> None:
        """Note whether the state of every node is known and what is missing no longer changes."""
        missing = [view.missing for view in self.nodes.values()]
        is_known = all(view.is_active or view.problem for view in self.nodes.values())
        if not (self._missing and is_known):
            self._unknown_s = now_s
        if missing != self._missing:
            self._missing = missing
            self._changed_s = now_s
        is_quiet = is_known and now_s - self._changed_s >= SETTLED_AFTER_S
        self.is_settled |= is_quiet or now_s - self._unknown_s >= MAX_UNSETTLED_S
