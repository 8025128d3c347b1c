"""The rows that a person reads, and the nodes: which work, what they lack and its remedy, what they drop and take."""

import re
from collections.abc import Iterator
from enum import StrEnum

from norm_core.records.record import record
from norm_core.records.status import Health, MonitorStatus, NodeState
from norm_core.runtime.time import NS_PER_S
from norm_core.runtime.wording import count_of


class Tone(StrEnum):
    """The style of a row's label."""

    PLAIN = ""
    GOOD = "green"
    NOTE = "yellow"
    BAD = "bold red"
    SPEECH = "cyan"


@record
class WatchRow:
    """A label and a text, with details below it. The text may hold words of strangers."""

    label: str
    text: str
    tone: Tone = Tone.PLAIN
    details: tuple[tuple[str, str], ...] = ()


SILENT_AFTER_S = 5.0  # a node sends one heartbeat a second
TOLD_AGAIN_AFTER_S = 60.0
MAX_NODES = 100

_TONES = {Health.OK: Tone.GOOD, Health.DEGRADED: Tone.NOTE, Health.STALE: Tone.NOTE, Health.FAILED: Tone.BAD}


@record
class NodeBeat:
    """The last heartbeat of a node."""

    status: MonitorStatus
    arrival_ns: int
    is_silent: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether the node said that it ends."""
        return self.status.state is NodeState.FINALIZED

    @property
    def state(self) -> str:
        """What a person reads of its health."""
        if self.is_silent:
            return "silent"
        if self.has_ended:
            return "ended"
        return self.status.health.value if self.status.state is NodeState.ACTIVE else self.status.state.value

    @property
    def tone(self) -> Tone:
        """The style of its health."""
        if self.is_silent:
            return Tone.BAD
        return _TONES[self.status.health] if self.status.state is NodeState.ACTIVE else Tone.NOTE


class NodeHealthView:
    """The nodes of one namespace, by their names without it."""

    def __init__(self, namespace: str) -> None:
        self._prefix = f"{namespace}/"
        self.nodes: dict[str, NodeBeat] = {}
        self._now_ns = 0
        self._told_ns: dict[tuple[str, str], int] = {}

    @property
    def dropped(self) -> int:
        """How much the nodes dropped or lost since each was configured."""
        return sum(count for beat in self.nodes.values() for count in _drops(beat.status).values())

    def is_restart(self, status: MonitorStatus) -> bool:
        """Whether a heartbeat is the first of a new process of a known node. Two rivals restart nothing."""
        beat = self.nodes.get(self.name_of(status))
        return beat is not None and status.started_ns > beat.status.started_ns

    def name_of(self, status: MonitorStatus) -> str:
        """Return the name of a node without the namespace."""
        return status.node.removeprefix(self._prefix)

    def take(self, status: MonitorStatus, now_ns: int) -> Iterator[WatchRow]:
        """Take a heartbeat."""
        self._now_ns = now_ns
        name = self.name_of(status)
        before, is_restart = self.nodes.get(name), self.is_restart(status)
        if before is None and len(self.nodes) >= MAX_NODES:
            return
        beat = self.nodes[name] = NodeBeat(status=status, arrival_ns=now_ns)
        if before is None:
            yield WatchRow(label="node", text=f"{name}: {beat.state}", tone=beat.tone)
        elif is_restart:
            yield WatchRow(label="node", text=f"{name}: started anew, {beat.state}", tone=beat.tone)
        elif before.state != beat.state:
            yield from self._rows(name, [f"from {before.state} to {beat.state}"], beat.tone, now_ns)
        old = before.status.reasons if before else ()
        yield from self._rows(name, [reason for reason in status.reasons if reason not in old], beat.tone, now_ns)
        if not status.reasons:
            gone = [f"no longer: {reason.partition('; ')[0]}" for reason in old]  # its remedy is told already
            yield from self._rows(name, gone, Tone.GOOD, now_ns)
        drops, drops_before = _drops(status), _drops(before.status) if before else {}
        new = [f"{what} lost {count} so far" for what, count in drops.items() if count > drops_before.get(what, 0)]
        yield from self._rows(name, new, Tone.NOTE, now_ns)

    def take_time(self, now_ns: int) -> Iterator[WatchRow]:
        """Take that time passed: a node without heartbeats has ended or hangs."""
        self._now_ns = now_ns
        for name, beat in self.nodes.items():
            if not (beat.is_silent or beat.has_ended) and now_ns - beat.arrival_ns > SILENT_AFTER_S * NS_PER_S:
                self.nodes[name] = NodeBeat(status=beat.status, arrival_ns=beat.arrival_ns, is_silent=True)
                text = f"{name}: no heartbeat for {SILENT_AFTER_S:.0f} s; look at its process and network"
                yield WatchRow(label="node", text=text, tone=Tone.BAD)

    def summary(self) -> str:
        """Count the nodes by their health."""
        states = [beat.state for beat in self.nodes.values()]
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        return f"{count_of(len(states), 'node')}: {counts}" if states else "no node"

    def _rows(self, name: str, texts: list[str], tone: Tone, now_ns: int) -> Iterator[WatchRow]:
        """Yield what was not told of late; other digits do not make it news."""
        for text in texts:
            key = (name, re.sub(r"\d+", "0", text))
            told_ns = self._told_ns.get(key)
            if told_ns is None or now_ns - told_ns >= TOLD_AGAIN_AFTER_S * NS_PER_S:
                self._told_ns.pop(key, None)
                self._told_ns[key] = now_ns
                yield WatchRow(label="node", text=f"{name}: {text.removeprefix(f'{name}: ')}", tone=tone)
        while len(self._told_ns) > MAX_NODES * 10:
            del self._told_ns[next(iter(self._told_ns))]


def _drops(status: MonitorStatus) -> dict[str, int]:
    lost = sum(counter.count for counter in status.counters if counter.name == "messages_lost")
    return {f"queue {queue.name}": queue.dropped for queue in status.queues} | {"the middleware": lost}
