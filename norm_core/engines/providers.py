"""What small models run on; a provider that fails is counted, and named in the status with the remedy."""

from collections.abc import Callable
from typing import Literal

from norm_core.health.health_log import HealthLog
from norm_core.records.record import record
from norm_core.records.status import Health

Provider = Literal["tensorrt", "cuda", "cpu"]
PROVIDER_ORDER = "tried in the given order, as [tensorrt, cuda]; one that fails gives way to the next, at last to cpu"


@record
class ProviderFault:
    """A provider or device that was tried and did not load or run the model."""

    provider: str
    reason: str


OnFault = Callable[[ProviderFault], None]


def fault_reporter(health_log: HealthLog, what: str, parameter: str) -> OnFault:
    """Return what counts each fault and states it in the status; `parameter` is where the providers are named."""

    def report(fault: ProviderFault) -> None:
        health_log.count("provider_fallbacks")
        reason = (
            f"{what}: {fault.provider} does not run the model, and the next provider does: {fault.reason}; mend that "
            f"and configure the node again, or change {parameter}"
        )
        health_log.raise_issue(f"accelerator of {what}: {fault.provider}", Health.DEGRADED, reason)

    return report
