"""The model, prompt and configuration behind an answer, precise enough to reproduce it."""

from norm_core.records.record import record


@record
class LatencySegment:
    """One named segment of a latency."""

    name: str
    duration_ns: int


@record
class Provenance:
    """The inputs, model and configuration of an answer."""

    window_digest: str = ""
    prompt_digest: str = ""
    prompt_version: str = ""
    model: str = ""
    weights_sha256: str = ""
    quantization: str = ""
    config_sha256: str = ""
    software_version: str = ""
    seed: int = 0
    window_late: bool = False  # a window closed late or the judge timed out, so a replay may differ
    latency: tuple[LatencySegment, ...] = ()

    @property
    def total_ns(self) -> int:
        """The time from request to answer: the sum of its contiguous segments."""
        return sum(segment.duration_ns for segment in self.latency)
