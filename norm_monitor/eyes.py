"""Eyes: camera images in, frames and presence out."""

from collections.abc import Iterator

from norm_core.engines.errors import EngineFailedError
from norm_core.health.health_log import HealthLog
from norm_core.records.frame import Frame
from norm_core.records.presence import Presence
from norm_core.records.status import Health
from norm_monitor.senses.camera.frame_keeper import FrameConfig, FrameKeeper
from norm_monitor.senses.camera.picture import Picture
from norm_monitor.senses.faces.finder import FaceFinder
from norm_monitor.senses.faces.presence_tracker import PresenceTracker


class Eyes:
    """The vision front end of one camera. Call it from one thread, in the order of arrival."""

    def __init__(
        self,
        topic: str,
        health_log: HealthLog,
        config: FrameConfig | None = None,
        finder: FaceFinder | None = None,
        left_after_s: float = 2.0,
        *,
        offset_ns: int = 0,
    ) -> None:
        """Yield no presence from `take` if there is no finder.

        People have left after `left_after_s` seconds out of sight. `offset_ns` is added to the stamps of pictures.
        """
        self.keeper = FrameKeeper(topic, health_log, config, offset_ns=offset_ns)
        self._finder, self._health_log = finder, health_log
        self._tracker = PresenceTracker(left_after_s)

    @property
    def has_presence(self) -> bool:
        """Whether faces are detected."""
        return self._finder is not None

    def take(self, picture: Picture) -> Iterator[Frame | Presence]:
        """Yield the frame if this picture is selected, then, after face detection, the people in it."""
        frame = self.keeper.keep(picture)
        if frame is None:
            return
        yield frame
        if self._finder:
            try:
                faces = self._finder.find(frame)
            except EngineFailedError as error:  # no presence: it would say that nobody is there
                self._health_log.count("frames_without_faces")
                why = f"faces: a frame was not searched: {error}; name cpu in face_providers of camera, or free memory"
                self._health_log.raise_issue("faces", Health.DEGRADED, why)
                return
            self._health_log.clear_issue("faces")
            yield self._tracker.follow(frame, faces)
