"""The engines that a node leases, and their part of its status."""

from collections import Counter as Tally

from norm_core.engines.engine_pool import EngineLease, EnginePool, Urgency
from norm_core.health.health_log import HealthLog
from norm_core.records.status import Counter, Health, QueueStatus
from norm_core.runtime.errors import TactfulError


class LeasedEngines:
    """The leases of a node. `pool` may be shared with the other nodes of its process."""

    def __init__(self, pool: EnginePool, health_log: HealthLog) -> None:
        self.pool = pool
        self._health_log = health_log
        self._leases: list[EngineLease] = []

    def lease(self, model: str, urgency: Urgency) -> EngineLease:
        """Lease a model's engine until `close`. Raises TactfulError where it cannot be opened."""
        lease = self.pool.lease(model, urgency)
        self._leases.append(lease)
        return lease

    def load(self, model: str, node: str) -> EngineLease | None:
        """Load a model and return a further lease that keeps it loaded, or None. Callable from any thread."""
        self._health_log.raise_issue("loading", Health.DEGRADED, f"{node}: the model {model} is being loaded; wait")
        try:
            return self.pool.lease(model, Urgency.BACKGROUND)
        except TactfulError:
            return None  # whoever leases it next meets the same error, and states it
        finally:
            self._health_log.clear_issue("loading")

    def close(self) -> None:
        """End every lease."""
        while self._leases:
            self._leases.pop().close()

    def state_faults(self) -> None:
        """State which model servers cannot be reached, and the issues of the engines."""
        for lease in self._leases:
            model, server = lease.model_info.model, lease.server_status
            outage = server.outage if server else ""
            why = f"{outage}; requests fail at once until it is reached again" if outage else ""
            self._health_log.state_issue(f"server of {model}", why)
            self._health_log.state_issue(f"engine of {model}", "; ".join(lease.health.issues))

    def list_queues(self) -> tuple[QueueStatus, ...]:
        """Return the queue of each lease."""
        return tuple(lease.status() for lease in self._leases)

    def list_counters(self) -> list[Counter]:
        """Return the counters of the engines and their servers."""
        servers = [lease.server_status for lease in self._leases]
        refused = sum(server.requests_refused for server in servers if server)
        counters = [Counter(name="server_requests_refused", count=refused)] if any(servers) else []
        by_model = {lease.model_info.model: lease.health for lease in self._leases}  # its leases share one engine
        tally: Tally[str] = Tally()
        for health in by_model.values():
            tally.update({counter.name: counter.count for counter in health.counters})
        return counters + [Counter(name=name, count=count) for name, count in tally.items()]
