"""The senses' records in, closed windows out."""

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import Field

from norm_core.records.episode import Episode, Query
from norm_core.records.frame import Frame
from norm_core.records.messages import MessageError
from norm_core.records.presence import Presence
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.status import Health
from norm_core.records.window import ClosedWindow, Window, closed
from norm_monitor.windows.feed import WindowConfig, WindowFeed
from norm_nodes.convert import from_ros, to_ros
from norm_nodes.endpoint import EVENTS
from norm_nodes.norm_node import NormNode


class WindowsNodeConfig(WindowConfig):
    frames_topic: str = Field(default="frames", min_length=1, description="kept frames")
    presence_topic: str = Field(default="presence", min_length=1, description="who is before the camera")
    utterances_topic: str = Field(default="utterances", min_length=1, description="who said what")
    robot_speech_topic: str = Field(
        default="robot_speech", min_length=1, description="when the robot starts and stops to speak"
    )
    queries_topic: str = Field(default="queries", min_length=1, description="queries, each with a window ending at it")
    episodes_topic: str = Field(default="episodes", min_length=1, description="episodes, each with a window at its end")


class WindowsNode(NormNode[WindowsNodeConfig]):
    """Cuts what the senses publish into windows by stamps alone and tells of each that closes; no timer decides."""

    config_model = WindowsNodeConfig

    def __init__(self) -> None:
        super().__init__("windows")
        self._active = False

    def open(self) -> None:
        config = self.config
        self._feed = WindowFeed(config)
        self._counted: dict[str, int] = {}
        self._closed = self.offer(ClosedWindow, "windows", EVENTS, "each window that closed, by its digest")
        self._listen_to(Frame, config.frames_topic, "kept frames")
        self._listen_to(Presence, config.presence_topic, "who is before the camera")
        self._listen_to(Utterance, config.utterances_topic, "who said what; one without a text says: silence so far")
        self._listen_to(RobotSpeech, config.robot_speech_topic, "when the robot itself speaks")
        self._listen_to(Query, config.queries_topic, "an event, whose window ends at it")
        self._listen_to(Episode, config.episodes_topic, "an episode's end is an event too")

    def start(self) -> None:
        self._active = True

    def stop(self) -> None:
        self._active = False
        self._tell(self._feed.cutter.flush())

    def _listen_to(self, type_: type[Any], topic: str, description: str) -> None:
        self.listen(type_, topic, self._taking(type_), EVENTS, description)

    def _taking(self, type_: type[Any]) -> Callable[[Any], None]:
        def take(message: Any) -> None:
            if not self._active:
                return
            try:
                record = from_ros(type_, message)
            except MessageError as error:
                self.count("messages_refused")
                self.trouble("messages", Health.DEGRADED, str(error))
                return
            self._tell(self._feed.take(record))

        return take

    def _tell(self, windows: Iterable[Window]) -> None:
        for window in windows:
            self._closed.publish(to_ros(closed(window)))
            if window.missing:
                reason = (
                    f"a window closed without {', '.join(window.missing)}: its node is absent, slow or has no input"
                )
                self.trouble("missing", Health.DEGRADED, reason)
            else:
                self.mended("missing")
        for counter in self._feed.cutter.counters:
            self.count(counter.name, counter.count - self._counted.get(counter.name, 0))
            self._counted[counter.name] = counter.count
