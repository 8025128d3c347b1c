"""Records of the senses in, closed windows out: the same for a node, a bag and a monitor in process."""

from pydantic import Field, field_validator

from norm_core.config import Config
from norm_core.episode import Episode, EpisodeEdge, Query
from norm_core.frame import Frame
from norm_core.presence import Presence
from norm_core.speech import RobotSpeech, Utterance
from norm_core.time import s_to_ns
from norm_core.window import Window
from norm_monitor.senses.windows import WindowCutter

# What has a watermark of its own: each comes in the order of its stamps, so that a stamp says that all before it is
# there. The robot's speech comes too seldom for that; it is taken as it comes, and counted where it comes too late.
FRAMES, PRESENCE, UTTERANCES = SOURCES = ("frames", "presence", "utterances")


class WindowConfig(Config):
    """How windows are cut."""

    sources: tuple[str, ...] = Field(
        default=SOURCES, min_length=1, description=f"what a window waits for, of {', '.join(SOURCES)}"
    )
    length_s: float = Field(default=15.0, ge=0.1, le=600, description="seconds of stamp time in a window")
    step_s: float = Field(default=5.0, ge=0.1, le=600, description="a window ends at each multiple of this")
    lateness_s: float = Field(
        default=3.0,
        ge=0,
        le=600,
        description="how far the foremost source may be ahead of a window's end before the window closes without the "
        "others, marked late; 0 to wait for all for ever",
    )

    @field_validator("sources")
    @classmethod
    def _known(cls, sources: tuple[str, ...]) -> tuple[str, ...]:
        if set(sources) - set(SOURCES) or len(set(sources)) < len(sources):
            raise ValueError(f"sources are of {', '.join(SOURCES)}, each once")
        return sources


class WindowFeed:
    """Takes records in the order of arrival. An event (a query, an episode's end) has a window that ends at it."""

    def __init__(self, config: WindowConfig) -> None:
        self._sources = config.sources
        self.cutter = WindowCutter(
            config.sources,
            length_ns=s_to_ns(config.length_s),
            step_ns=s_to_ns(config.step_s),
            lateness_ns=s_to_ns(config.lateness_s) if config.lateness_s else None,
        )

    def take(self, record: Frame | Presence | Utterance | RobotSpeech | Query | Episode) -> list[Window]:
        """The windows that close by this record."""
        match record:
            case Query():
                self.cutter.ask(record.stamp_ns)
            case Episode():
                if record.state is EpisodeEdge.END:
                    self.cutter.ask(record.end_ns)
            case RobotSpeech():
                self.cutter.add(record)
            case Utterance():
                windows = self._pass_by(UTTERANCES, record.start_ns)
                if record.final:
                    self.cutter.add(record)
                return windows
            case Frame() | Presence():
                source = FRAMES if isinstance(record, Frame) else PRESENCE
                windows = self._pass_by(source, record.stamp_ns)
                self.cutter.add(record)
                return windows
        return []

    def _pass_by(self, source: str, stamp_ns: int) -> list[Window]:
        # Before the record is added: after a jump back in time it belongs to the time that begins with it.
        return self.cutter.pass_by(source, stamp_ns) if source in self._sources else []
