"""Mute sound messages wherever a person without consent may speak."""

from bisect import bisect_right
from dataclasses import fields, replace
from typing import Any

import numpy as np

from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.microphone.audio_message import SoundChunk, decode
from norm_monitor.senses.microphone.pcm import PcmFormat, SoundError

# A message without its own format has no known duration, so it is refused.
_STATED_NOWHERE = PcmFormat(sample_format="unstated", rate_hz=0, channels=0)
_SILENCES = (b"\0", b"\x80", b"\0\x80")


class VoiceMuting:
    """Mute outside `spans_ns`, the sorted, separate spans in which only consenting people speak."""

    def __init__(self, spans_ns: list[tuple[int, int]]) -> None:
        self._starts = [start for start, _ in spans_ns]
        self._ends = [end for _, end in spans_ns]

    def treat(self, message: Any, recorded_ns: int, stated: PcmFormat | None = None) -> Any:
        """Return the message unchanged if it lies within one span, otherwise muted.

        `stated` is the format of messages without one. Raises SoundError if the message holds no sound.
        """
        stated = stated or _STATED_NOWHERE
        chunk = decode(message, stated)
        length_ns = len(chunk.samples) * NS_PER_S // chunk.rate_hz
        start_ns, end_ns = recorded_ns - length_ns, recorded_ns + length_ns
        if chunk.stamp_ns is not None:
            start_ns, end_ns = chunk.stamp_ns, chunk.stamp_ns + length_ns
        index = bisect_right(self._starts, start_ns) - 1
        if index >= 0 and end_ns <= self._ends[index]:
            return message
        return _silent(message, chunk, stated)


def join_spans(spans_ns: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sort spans, and merge those that touch."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans_ns):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def _silent(message: Any, chunk: SoundChunk, stated: PcmFormat) -> Any:
    for silence in _SILENCES:
        made = _filled(message, silence)
        # The value of silence depends on the format, so it is checked.
        if not decode(made, stated).samples.any() and len(chunk.samples):
            return made
    raise SoundError("audio_format_unknown", "its format has no silence")


def _filled(message: Any, silence: bytes) -> Any:
    """Fill every numeric array in a message with silence."""
    if hasattr(message, "audio"):
        return replace(message, audio=_filled(message.audio, silence))
    if hasattr(message, "audio_data"):
        return replace(message, audio_data=_filled(message.audio_data, silence))
    changes = {}
    for field in fields(message):
        value = getattr(message, field.name)
        if isinstance(value, np.ndarray) and "data" in field.name:
            raw = (silence * (value.nbytes // len(silence) + 1))[: value.nbytes]
            changes[field.name] = np.frombuffer(raw, value.dtype)
    return replace(message, **changes)
