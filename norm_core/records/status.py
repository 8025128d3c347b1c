"""A node's heartbeat: its health, its reasons and its counters."""

from enum import StrEnum

from norm_core.records.record import record


class Health(StrEnum):
    """The health of a node."""

    OK = "ok"
    DEGRADED = "degraded"  # works, but a part that `reasons` names does not
    STALE = "stale"  # input has stopped
    FAILED = "failed"


class NodeState(StrEnum):
    """The lifecycle state of a node."""

    UNCONFIGURED = "unconfigured"
    INACTIVE = "inactive"
    ACTIVE = "active"
    FINALIZED = "finalized"


@record
class Counter:
    """One named counter."""

    name: str
    count: int


@record
class QueueStatus:
    """The length, policy and drops of a queue."""

    name: str
    depth: int
    capacity: int
    received: int
    dropped: int


@record
class MonitorStatus:
    """The heartbeat of a node."""

    stamp_ns: int
    frame_id: str = ""
    node: str
    state: NodeState
    health: Health
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what a user should know though the node is well
    software_version: str
    config_sha256: str
    instance_id: str
    started_ns: int
    queues: tuple[QueueStatus, ...] = ()
    counters: tuple[Counter, ...] = ()
