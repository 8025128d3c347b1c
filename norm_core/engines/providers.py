"""The providers of ONNX Runtime, and the report of those that fail."""

from collections.abc import Callable
from typing import Literal

from norm_core.health.health_log import HealthLog
from norm_core.records.record import record
from norm_core.records.status import Health

Provider = Literal["cuda", "cpu"]
# For descriptions of parameters.
PROVIDER_ORDER = "tried in this order, such as [cuda]; if all fail, the CPU is used"


@record
class ProviderFault:
    """A provider or device that was tried and did not load or run the model."""

    provider: str
    reason: str


OnFault = Callable[[ProviderFault], None]


def make_fault_reporter(health_log: HealthLog, model_use: str, parameter: str) -> OnFault:
    """Return a callback that counts each fault and raises an issue; `parameter` is the one that lists the providers."""

    def report(fault: ProviderFault) -> None:
        health_log.count("provider_fallbacks")
        reason = (
            f"{model_use}: {fault.provider} does not run the model, and the next provider does: {fault.reason}; "
            f"correct that and configure the node again, or change {parameter}"
        )
        health_log.raise_issue(f"accelerator of {model_use}: {fault.provider}", Health.DEGRADED, reason)

    return report
