"""The eyes: a camera's pictures in, kept frames and presence out."""

from collections.abc import Iterator
from concurrent.futures import Future

from norm_core.records.frame import Frame
from norm_core.records.presence import Presence
from norm_core.runtime.health_log import HealthLog
from norm_monitor.senses.camera.frame_keeper import FrameConfig, FrameKeeper
from norm_monitor.senses.camera.picture import Picture
from norm_monitor.senses.faces.finder import FaceFinder
from norm_monitor.senses.faces.presence_tracker import PresenceTracker


class Eyes:
    """One camera. Hand it pictures in the order of arrival, from one thread; it has no clock and no end of input."""

    def __init__(
        self,
        topic: str,
        health_log: HealthLog,
        config: FrameConfig | None = None,
        finder: FaceFinder | None = None,
        left_after_s: float = 2.0,
    ) -> None:
        """Without a finder, no presence is given."""
        self.keeper = FrameKeeper(topic, health_log, config)
        self._finder = finder
        self._tracker = PresenceTracker(left_after_s)

    @property
    def gives_presence(self) -> bool:
        """Whether faces are looked for."""
        return self._finder is not None

    def take(self, seen: Picture | Frame, ahead: Future[Frame] | None = None) -> Iterator[Frame | Presence]:
        """Give the frame where this picture is kept, then who is in it; a Frame was kept before.

        The frame comes before faces are looked for. `ahead` may have made it already.
        """
        frame = seen if isinstance(seen, Frame) else self.keeper.keep(seen, ahead)
        if frame is None:
            return
        yield frame
        if self._finder:
            yield self._tracker.follow(frame, self._finder.find(frame))
