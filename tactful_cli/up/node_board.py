"""What is known of each node from its heartbeats, and the lines about it for a person."""

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from norm_core.records.record import record
from norm_core.records.status import MonitorStatus, NodeState
from norm_core.runtime.wording import count_of

STATED_AGAIN_AFTER_S = 60.0
SILENT_AFTER_S = 3.0  # a node sends one heartbeat a second
HANGS_AFTER_S = 30.0  # then its process is killed
STOOD_STILL_S = 10.0  # without a look at the board
SILENCE = f"no heartbeat came for {SILENT_AFTER_S:.0f} s; look at the load of the machine, or start up again"
SETTLED_AFTER_S, SETTLED_AT_MOST_S = 3.0, 10.0  # discovery takes up to three seconds
_of_any_number = partial(re.sub, r"\d+", "0")


@record
class NodeView:
    """One node: when its process was launched, and its last heartbeat or why its process ended."""

    launched_ns: int = 0
    status: MonitorStatus | None = None
    problem: str = ""
    restarts: int = 0
    heard_s: float = 0.0  # when the last heartbeat came

    @property
    def is_active(self) -> bool:
        """Whether the node works."""
        return not self.problem and self.status is not None and self.status.state is NodeState.ACTIVE

    @property
    def missing(self) -> tuple[str, ...]:
        """What the node lacks."""
        if self.problem:
            return (self.problem,)
        return self.status.reasons if self.status else ("has sent no heartbeat yet",)


class NodeBoard:
    """The nodes of a profile by name. Each method that takes news returns the lines that it is worth."""

    def __init__(self, nodes: Iterable[str], namespace: str) -> None:
        self.nodes = {node: NodeView() for node in nodes}
        self._prefix = f"{namespace}/"
        self._stated_s: dict[tuple[str, str], float] = {}
        self._all_were_active = False
        self._missing: list[tuple[str, ...]] = []
        self._changed_s = self._unknown_s = 0.0  # when what is missing changed, and when a node was last unknown
        self._looked_s = 0.0  # when `take_time` was called last
        self.is_settled = False  # every node works or is known not to, and discovery has found what there is

    @property
    def all_active(self) -> bool:
        """Whether every node works."""
        return all(view.is_active for view in self.nodes.values())

    def take_launch(self, nodes: Iterable[str], launched_ns: int, restarts: int) -> None:
        """Take that the process of some nodes was launched. Older heartbeats count no more."""
        for node in nodes:
            self.nodes[node] = NodeView(launched_ns=launched_ns, restarts=restarts, problem="")

    def take_end(self, nodes: Iterable[str], problem: str) -> None:
        """Take that the process of some nodes ended."""
        for node in nodes:
            self.nodes[node] = NodeView(problem=problem, restarts=self.nodes[node].restarts)
        self._all_were_active = False

    def take_status(self, status: MonitorStatus, now_s: float) -> list[str]:
        """Take a heartbeat."""
        node = status.node.removeprefix(self._prefix)
        view = self.nodes.get(node)
        if view is None or view.problem or status.started_ns < view.launched_ns:
            return []  # of a process that has ended
        before = view
        if now_s - view.heard_s > SILENT_AFTER_S:
            self._stated_s.pop((node, _of_any_number(SILENCE)), None)  # the next silence is another one
        view = self.nodes[node] = NodeView(
            launched_ns=view.launched_ns, status=status, restarts=view.restarts, heard_s=now_s
        )
        lines: list[str] = []
        if before.is_active and not view.is_active:
            lines += self._lines(node, [f"is {status.state}; its lifecycle was changed from outside"], now_s)
            self._all_were_active = False
        if view.is_active and not before.is_active and view.restarts:
            lines.append(f"{node}: is active again, after {count_of(view.restarts, 'restart')}")
        if self._all_were_active and self.is_settled:
            new = [reason for reason in status.reasons if before.status and reason not in before.status.reasons]
            gone = [reason for reason in (before.status.reasons if before.status else ()) if reason not in view.missing]
            lines += self._lines(node, new, now_s)
            lines += self._lines(node, [f"no longer: {reason}" for reason in gone if not new], now_s)
        elif self.all_active and not self._all_were_active:
            self._all_were_active = True
            lines.append("all nodes are active")
        return lines

    def take_time(self, now_s: float) -> list[str]:
        """Take that time passed: the graph settles, and a node that works and sends nothing hangs."""
        self._settle(now_s)
        if now_s - self._looked_s > STOOD_STILL_S:  # this process itself stood still, so that heartbeats wait unread
            self.excuse(now_s)
        self._looked_s = now_s
        silent = [name for name, view in self.nodes.items() if view.is_active and now_s - view.heard_s > SILENT_AFTER_S]
        return [line for name in silent for line in self._lines(name, [SILENCE], now_s)]

    def excuse(self, now_s: float) -> None:
        """Count every silence from now on, because until now no heartbeat could be read."""
        for name, view in self.nodes.items():
            if view.is_active:
                self.nodes[name] = replace(view, heard_s=now_s)

    def hanging(self, now_s: float) -> set[str]:
        """Return the nodes that were active and have been silent for so long that their process hangs."""
        return {name for name, view in self.nodes.items() if view.is_active and now_s - view.heard_s > HANGS_AFTER_S}

    def _settle(self, now_s: float) -> None:
        """Note that every node is known and that what is missing no longer changes, or changes for long."""
        missing = [view.missing for view in self.nodes.values()]
        is_known = all(view.is_active or view.problem for view in self.nodes.values())
        if not (self._missing and is_known):
            self._unknown_s = now_s
        if missing != self._missing:
            self._missing, self._changed_s = missing, now_s
        is_quiet = is_known and now_s - self._changed_s >= SETTLED_AFTER_S
        self.is_settled |= is_quiet or now_s - self._unknown_s >= SETTLED_AT_MOST_S

    def _lines(self, node: str, reasons: Iterable[str], now_s: float) -> list[str]:
        """Return one line for each reason that was not stated of late; digits do not make a reason a new one."""
        lines = []
        for reason in reasons:
            key = (node, _of_any_number(reason))
            if now_s - self._stated_s.get(key, -STATED_AGAIN_AFTER_S) >= STATED_AGAIN_AFTER_S:
                self._stated_s[key] = now_s
                lines.append(f"{node}: {reason.removeprefix(f'{node}: ')}")
        return lines
