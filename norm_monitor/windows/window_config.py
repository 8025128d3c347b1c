"""The window configuration, and the records that windows contain."""

from typing import Annotated

from pydantic import AfterValidator, Field

from norm_core.records.episode import Episode, Query
from norm_core.records.frame import Frame
from norm_core.records.presence import Presence
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.runtime.config import Config
from norm_core.runtime.time import s_to_ns
from norm_core.runtime.watermarks import SOURCES, UTTERANCES, Watermarks, known_sources
from norm_monitor.windows.cutter import WindowCutter


def _some_sources(sources: tuple[str, ...]) -> tuple[str, ...]:
    if not sources:
        raise ValueError(f"name one source at least, such as [{UTTERANCES}]; there are {', '.join(SOURCES)}")
    return known_sources(sources)


class WindowConfig(Config):
    """How windows are cut."""

    sources: Annotated[tuple[str, ...], AfterValidator(_some_sources)] = Field(
        default=SOURCES, description=f"the sources that a window waits for, among {', '.join(SOURCES)}"
    )
    length_s: float = Field(default=15.0, ge=0.1, le=600, description="seconds of stamp time in a window")
    step_s: float = Field(default=5.0, ge=0.1, le=600, description="a window ends at each multiple of this")
    # Frames run up to a period ahead, and the words of a robot's own recogniser up to two seconds behind.
    lateness_s: float = Field(
        default=4.0,
        ge=0,
        le=600,
        description="how far the foremost source may pass a window's end before the window closes without the others, "
        "marked late; 0 waits for all sources without a limit",
    )

    frames_every_s: float = Field(
        default=1.0,
        gt=0,
        le=60,
        description="period of frames and presence; a record in a period means that the next one comes after its end",
    )

    def cutter(self) -> WindowCutter:
        """Return a cutter for this configuration."""
        return WindowCutter(
            self.sources,
            length_ns=s_to_ns(self.length_s),
            step_ns=s_to_ns(self.step_s),
            lateness_ns=s_to_ns(self.lateness_s) if self.lateness_s else None,
        )

    def watermarks(self) -> Watermarks:
        """Return the watermarks of the sources."""
        return Watermarks(self.sources, s_to_ns(self.frames_every_s))


Record = Frame | Presence | Utterance | RobotSpeech | Query | Episode
