"""What an engine reports for a node's status beside its queue."""

from norm_core.records.record import record
from norm_core.records.status import Counter


@record
class EngineHealth:
    """Problems with their remedies, and counters; both are sums over the life of the engine."""

    issues: tuple[str, ...] = ()
    counters: tuple[Counter, ...] = ()


@record
class ServerStatus:
    """The reachability of a model's server; `outage` is empty while it can be reached."""

    outage: str = ""
    requests_refused: int = 0
