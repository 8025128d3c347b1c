"""The providers of ONNX Runtime, and a report of those that fail."""

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
    """Return a callback that counts each fault and raises an issue; `parameter` names the node's list of providers."""

    def report(fault: ProviderFault) -> None:
        health_log.count("provider_fallbacks")
        reason = (
            f"{what}: {fault.provider} does not run the model, and the next provider does: {fault.reason}; correct "
            f"that and configure the node again, or change {parameter}"
        )
        health_log.raise_issue(f"accelerator of {what}: {fault.provider}", Health.DEGRADED, reason)

    return report
