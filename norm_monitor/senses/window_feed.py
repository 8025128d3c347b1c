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

    frames_every_s: float = Field(
        default=1.0,
        gt=0,
        le=60,
        description="period of kept frames and of presence: one in a period says that the next comes after its end",
    )

    def cutter(self) -> WindowCutter:
        """What cuts windows as configured."""
        return WindowCutter(
            self.sources,
            length_ns=s_to_ns(self.length_s),
            step_ns=s_to_ns(self.step_s),
            lateness_ns=s_to_ns(self.lateness_s) if self.lateness_s else None,
        )

    @field_validator("sources")
    @classmethod
    def _known(cls, sources: tuple[str, ...]) -> tuple[str, ...]:
        if set(sources) - set(SOURCES) or len(set(sources)) < len(sources):
            raise ValueError(f"sources are of {', '.join(SOURCES)}, each once")
        return sources


Record = Frame | Presence | Utterance | RobotSpeech | Query | Episode


class Watermarks:
    """How far each source is known to have got, by the records that it gives."""

    def __init__(self, config: WindowConfig) -> None:
        self._sources, self._period_ns = config.sources, s_to_ns(config.frames_every_s)

    def of(self, record: Record) -> tuple[str, int] | None:
        """The source and its watermark once record has been taken; None where it moves none.

        A camera keeps the first frame of each period, so that nothing more comes before the period's end.
        """
        match record:
            case Frame() | Presence():
                source = FRAMES if isinstance(record, Frame) else PRESENCE
                mark = source, (record.stamp_ns // self._period_ns + 1) * self._period_ns
            case Utterance():
                mark = UTTERANCES, record.start_ns
            case _:
                return None
        return mark if mark[0] in self._sources else None


class WindowFeed:
    """Takes records in the order of arrival. An event (a query, an episode's end) has a window that ends at it."""

    def __init__(self, config: WindowConfig) -> None:
        self._watermarks = Watermarks(config)
        self.cutter = config.cutter()

    def take(self, record: Record) -> list[Window]:
        """The windows that close by this record."""
        windows: list[Window] = []
        mark = self._watermarks.of(record)
        if mark and self.cutter.goes_back(*mark):
            windows += self.cutter.pass_by(
                mark[0], mark[1]
            )  # first: the record belongs to the time that begins with it
            mark = None
        match record:
            case Query():
                self.cutter.ask(record.stamp_ns)
            case Episode():
                if record.state is EpisodeEdge.END:
                    self.cutter.ask(record.end_ns)
            case Utterance():
                if record.final:
                    self.cutter.add(record)
            case _:
                self.cutter.add(record)
        return windows + (self.cutter.pass_by(*mark) if mark else [])
