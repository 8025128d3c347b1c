"""A node's heartbeat: its health, its reasons and its counters."""

from enum import StrEnum

from norm_core.records.record import record


class Health(StrEnum):
    OK = "ok"
    DEGRADED = "degraded"  # works without a part, which `reasons` names
    STALE = "stale"  # input has stopped
    FAILED = "failed"


class NodeState(StrEnum):
    UNCONFIGURED = "unconfigured"
    INACTIVE = "inactive"
    ACTIVE = "active"
    FINALIZED = "finalized"


@record
class Counter:
    name: str
    count: int


@record
class QueueStatus:
    name: str
    depth: int
    capacity: int
    received: int
    dropped: int


@record
class MonitorStatus:
    stamp_ns: int
    frame_id: str = ""
    node: str
    state: NodeState
    health: Health
    reasons: tuple[str, ...] = ()
    software_version: str
    config_sha256: str
    instance_id: str
    started_ns: int
    queues: tuple[QueueStatus, ...] = ()
    counters: tuple[Counter, ...] = ()
