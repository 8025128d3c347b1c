"""The sample rate at which sound arrives, where it differs from the stated one."""

from norm_core.runtime.time import ns_to_s
from norm_monitor.senses.microphone.audio_message import SoundChunk

COMMON_RATES_HZ = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000)
# A surplus of samples above this share shows a higher rate.
_SURPLUS_RATIO = 0.05
# A lack above this share shows a lower rate, which must be a common one: the samples may be lost messages.
_LACK_RATIO = 0.25
# A measured rate this close to a common one is that rate.
_COMMON_TOLERANCE_RATIO = 0.04
# A rate that differs more from the reported one is reported anew.
_NEW_RATE_RATIO = 0.1
# A stretch is judged after at least and at most this time.
_MIN_STRETCH_S = 5.0
_MAX_STRETCH_S = 60.0
# The delay by which messages may vary.
_SLACK_S = 1.0
# A longer pause, and one longer than so many chunks, begins a new stretch.
_MAX_PAUSE_S = 1.0
_MAX_PAUSE_CHUNKS = 8


def detect_other_rate_hz(samples: int, elapsed_s: float, stated_hz: int, slack_s: float) -> int | None:
    """Return the rate at which samples came, unless it may be the stated one within `slack_s` of delay."""
    surplus_s = samples / stated_hz - elapsed_s
    rate_hz = samples / elapsed_s
    common_hz = min(COMMON_RATES_HZ, key=lambda common_rate_hz: abs(common_rate_hz - rate_hz))
    is_common = abs(common_hz - rate_hz) <= _COMMON_TOLERANCE_RATIO * common_hz
    if surplus_s > _SURPLUS_RATIO * elapsed_s + slack_s:
        return common_hz if is_common else round(rate_hz / 100) * 100
    return common_hz if is_common and -surplus_s > _LACK_RATIO * elapsed_s + slack_s else None


def describe_rate_problem(other_hz: int) -> str:
    """Describe the problem that samples arrive at another rate."""
    return f"about {other_hz} samples a second arrive, which is not the stated rate"


def describe_rate_remedy(other_hz: int) -> str:
    """Describe the remedy for a wrong rate."""
    alternatives = "channels, sample_format or the rate that its driver states"
    if other_hz in COMMON_RATES_HZ:
        return f"set rate_hz of ears to {other_hz}, or correct {alternatives}"
    return f"correct rate_hz of ears, {alternatives}"


class SampleRateCheck:
    """A check of the rate in stretches without pauses, by the stamps of messages or else by their arrival."""

    def __init__(self) -> None:
        self.other_hz: int | None = None  # the measured rate, if it is not the stated one
        self._kind = (0, False)
        self._begin_ns = 0
        self._last_ns = 0
        self._sample_count = 0
        self._slack_s = _SLACK_S

    def take(self, chunk: SoundChunk, arrival_ns: int) -> None:
        """Count the samples of a chunk."""
        at_ns = arrival_ns if chunk.stamp_ns is None else chunk.stamp_ns
        kind = (chunk.rate_hz, chunk.stamp_ns is None)
        step_s = ns_to_s(at_ns - self._last_ns)
        if kind != self._kind:
            self.other_hz = None
        max_pause_s = max(_MAX_PAUSE_S, _MAX_PAUSE_CHUNKS * len(chunk.samples) / chunk.rate_hz)
        if kind != self._kind or not -_MAX_PAUSE_S <= step_s <= max_pause_s:
            is_late = kind == self._kind and step_s > 0  # then the sound of the pause may come at once
            self._begin(kind, at_ns, _SLACK_S + step_s if is_late else _SLACK_S)
            return
        self._last_ns = at_ns
        self._sample_count += len(chunk.samples)
        elapsed_s = ns_to_s(at_ns - self._begin_ns)
        if elapsed_s < _MIN_STRETCH_S:
            return
        other_hz = detect_other_rate_hz(self._sample_count, elapsed_s, chunk.rate_hz, self._slack_s)
        if other_hz is None and elapsed_s < _MAX_STRETCH_S:
            return
        is_new = not (other_hz and self.other_hz) or abs(other_hz / self.other_hz - 1) > _NEW_RATE_RATIO
        self.other_hz = other_hz if is_new else self.other_hz
        self._begin(kind, at_ns)

    def _begin(self, kind: tuple[int, bool], at_ns: int, slack_s: float = _SLACK_S) -> None:
        """Begin a stretch."""
        self._kind = kind
        self._begin_ns = at_ns
        self._last_ns = at_ns
        self._sample_count = 0
        self._slack_s = slack_s
