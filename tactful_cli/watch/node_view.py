"""The rows that a person reads, and the nodes: which are active, what they lack and its remedy."""

from collections.abc import Iterable, Iterator
from enum import StrEnum

from norm_core.records.record import record
from norm_core.records.status import Health, MonitorStatus, NodeState
from norm_core.runtime.time import NS_PER_S, ns_to_s
from tactful_cli.lasting_reasons import LastingReasons


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


# A node sends one heartbeat a second.
SILENT_AFTER_S = 5.0
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
        self._reasons = LastingReasons()

    def is_restart(self, status: MonitorStatus) -> bool:
        """Whether a heartbeat is the first of a new process of a known node. Two rivals restart nothing."""
        beat = self.nodes.get(self.name_of(status))
        return beat is not None and status.started_ns > beat.status.started_ns

    def name_of(self, status: MonitorStatus) -> str:
        """Return the name of a node without the namespace."""
        return status.node.removeprefix(self._prefix)

    def take(self, status: MonitorStatus, now_ns: int) -> Iterator[WatchRow]:
        """Take a heartbeat. Changes of health have a row only if they last."""
        name = self.name_of(status)
        before = self.nodes.get(name)
        is_restart = self.is_restart(status)
        if before is None and len(self.nodes) >= MAX_NODES:
            return
        beat = NodeBeat(status=status, arrival_ns=now_ns)
        self.nodes[name] = beat
        if before is None or is_restart:
            self._reasons.accept(name, status.reasons)
            yield WatchRow(label="node", text=f"{name}: {'started anew, ' * is_restart}{beat.state}", tone=beat.tone)
            yield from _make_rows(name, status.reasons, beat.tone)
            return
        if before.is_silent or before.status.state is not status.state:
            yield from _make_rows(name, [f"from {before.state} to {beat.state}"], beat.tone)
        new, gone = self._reasons.update(name, status.reasons, ns_to_s(now_ns))
        yield from _make_rows(name, new, beat.tone)
        # The remedy was printed with the reason.
        yield from _make_rows(name, [f"no longer: {reason.partition('; ')[0]}" for reason in gone], Tone.GOOD)

    def take_time(self, now_ns: int) -> Iterator[WatchRow]:
        """Note that time passed: a node without heartbeats has ended or hangs."""
        for name, beat in self.nodes.items():
            if not (beat.is_silent or beat.has_ended) and now_ns - beat.arrival_ns > SILENT_AFTER_S * NS_PER_S:
                self.nodes[name] = NodeBeat(status=beat.status, arrival_ns=beat.arrival_ns, is_silent=True)
                text = f"{name}: no heartbeat for {SILENT_AFTER_S:.0f} s; check its process and network"
                yield WatchRow(label="node", text=text, tone=Tone.BAD)


def _make_rows(name: str, texts: Iterable[str], tone: Tone) -> Iterator[WatchRow]:
    """Make a row of each text about a node."""
    return (WatchRow(label="node", text=f"{name}: {text.removeprefix(f'{name}: ')}", tone=tone) for text in texts)
