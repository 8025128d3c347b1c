"""The sample rate at which sound arrives, where it differs from the stated one."""

from norm_core.runtime.time import ns_to_s
from norm_monitor.senses.microphone.audio_message import SoundChunk

COMMON_RATES_HZ = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000)
# Fewer samples may be lost messages, so they must be many fewer, and as many as at a common rate.
_MORE, _FEWER, _COMMON = 0.05, 0.25, 0.04
_NEWS = 0.1  # by which a rate differs from the one that was told
_MIN_S, _MAX_S, _SLACK_S = 5.0, 60.0, 1.0
_PAUSE_S, _PAUSE_CHUNKS = 1.0, 8


def detect_other_rate_hz(samples: int, elapsed_s: float, stated_hz: int, slack_s: float) -> int | None:
    """Return the rate at which samples came, where it cannot be the stated one within `slack_s` of delay."""
    surplus_s = samples / stated_hz - elapsed_s
    rate_hz = samples / elapsed_s
    common_hz = min(COMMON_RATES_HZ, key=lambda common_rate_hz: abs(common_rate_hz - rate_hz))
    is_common = abs(common_hz - rate_hz) <= _COMMON * common_hz
    if surplus_s > _MORE * elapsed_s + slack_s:
        return common_hz if is_common else round(rate_hz / 100) * 100
    return common_hz if is_common and -surplus_s > _FEWER * elapsed_s + slack_s else None


def describe_rate_problem(other_hz: int) -> str:
    """Return the problem: samples arrive at another rate."""
    return f"about {other_hz} samples a second arrive, which is not the stated rate"


def describe_rate_remedy(other_hz: int) -> str:
    """Return the remedy for a wrong rate."""
    others = "channels, sample_format or the rate that its driver states"
    if other_hz in COMMON_RATES_HZ:
        return f"set rate_hz of ears to {other_hz}, or correct {others}"
    return f"correct rate_hz of ears, {others}"


class SampleRateCheck:
    """Count the samples of a stretch without pauses, by the stamps of messages or else by their arrival."""

    def __init__(self) -> None:
        self.other_hz: int | None = None  # where not the stated rate
        self._kind = (0, False)
        self._begin_ns = self._last_ns = self._samples = 0
        self._slack_s = _SLACK_S

    def take(self, chunk: SoundChunk, arrival_ns: int) -> None:
        """Count the samples of a chunk."""
        at_ns = arrival_ns if chunk.stamp_ns is None else chunk.stamp_ns
        kind = (chunk.rate_hz, chunk.stamp_ns is None)
        step_s = ns_to_s(at_ns - self._last_ns)
        if kind != self._kind:
            self.other_hz = None
        longest_s = max(_PAUSE_S, _PAUSE_CHUNKS * len(chunk.samples) / chunk.rate_hz)  # of sound that goes on
        if kind != self._kind or not -_PAUSE_S <= step_s <= longest_s:
            is_late = kind == self._kind and step_s > 0  # then as much sound may come at once
            self._begin(kind, at_ns, _SLACK_S + step_s if is_late else _SLACK_S)
            return
        self._last_ns, self._samples = at_ns, self._samples + len(chunk.samples)
        elapsed_s = ns_to_s(at_ns - self._begin_ns)
        if elapsed_s < _MIN_S:
            return
        other_hz = detect_other_rate_hz(self._samples, elapsed_s, chunk.rate_hz, self._slack_s)
        if other_hz is None and elapsed_s < _MAX_S:
            return
        is_news = not (other_hz and self.other_hz) or abs(other_hz / self.other_hz - 1) > _NEWS
        self.other_hz = other_hz if is_news else self.other_hz
        self._begin(kind, at_ns)

    def _begin(self, kind: tuple[int, bool], at_ns: int, slack_s: float = _SLACK_S) -> None:
        self._kind, self._begin_ns, self._last_ns, self._samples = kind, at_ns, at_ns, 0
        self._slack_s = slack_s
