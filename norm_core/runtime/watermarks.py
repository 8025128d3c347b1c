"""How far each source is known to have got: nothing more of it comes with an earlier stamp."""

from norm_core.records.frame import Frame
from norm_core.records.presence import Presence
from norm_core.records.speech import Utterance
from norm_core.runtime.time import NS_PER_S

# What has a watermark of its own: each comes in the order of its stamps, so that a stamp says that all before it is
# there. The robot's speech comes too seldom for that; it is taken as it comes, and counted where it comes too late.
FRAMES, PRESENCE, UTTERANCES = SOURCES = ("frames", "presence", "utterances")
JUMP_NS = 60 * NS_PER_S  # a watermark that goes back this far begins a new time


def known_sources(sources: tuple[str, ...]) -> tuple[str, ...]:
    """The same, or a ValueError where one has no watermark or stands twice."""
    if set(sources) - set(SOURCES) or len(set(sources)) < len(sources):
        raise ValueError(f"sources are of {', '.join(SOURCES)}, each once")
    return sources


class Watermarks:
    """The watermarks of some sources, by the records that they give."""

    def __init__(self, sources: tuple[str, ...], period_ns: int) -> None:
        """A camera keeps the first frame of each period, so that nothing more comes before the period's end."""
        self._sources, self._period_ns = sources, period_ns

    def of(self, record: object) -> tuple[str, int] | None:
        """The source and its watermark once record has been taken; None where it moves none."""
        match record:
            case Frame() | Presence():
                source = FRAMES if isinstance(record, Frame) else PRESENCE
                mark = source, (record.stamp_ns // self._period_ns + 1) * self._period_ns
            case Utterance():
                mark = UTTERANCES, record.start_ns
            case _:
                return None
        return mark if mark[0] in self._sources else None
