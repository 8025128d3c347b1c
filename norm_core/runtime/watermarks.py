"""Watermarks: the time up to which each source is complete."""

from norm_core.records.frame import Frame
from norm_core.records.presence import Presence
from norm_core.records.speech import Utterance
from norm_core.runtime.time import NS_PER_S

# Sources with a watermark deliver in stamp order, so that a stamp proves that everything earlier has arrived. The
# robot's speech is too rare for that: each record is used on arrival, and counted if it is late.
FRAMES, PRESENCE, UTTERANCES = SOURCES = ("frames", "presence", "utterances")
JUMP_NS = 60 * NS_PER_S  # a watermark that goes back by more than this starts a new timeline


def known_sources(sources: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sources; raise ValueError for a duplicate or a source without a watermark."""
    if set(sources) - set(SOURCES) or len(set(sources)) < len(sources):
        raise ValueError(f"sources are of {', '.join(SOURCES)}, each once")
    return sources


class Watermarks:
    """Derive a source's watermark from each of its records. Keeps no state between records."""

    def __init__(self, sources: tuple[str, ...], period_ns: int) -> None:
        """Frames and presence come once per period, so a record completes its source up to the period's end."""
        self._sources, self._period_ns = sources, period_ns

    def of(self, record: object) -> tuple[str, int] | None:
        """Return the source and its watermark after a record; None if the record moves no watermark."""
        match record:
            case Frame() | Presence():
                source = FRAMES if isinstance(record, Frame) else PRESENCE
                mark = source, (record.stamp_ns // self._period_ns + 1) * self._period_ns
            case Utterance():
                mark = UTTERANCES, record.start_ns
            case _:
                return None
        return mark if mark[0] in self._sources else None
