"""The camera node: camera images in, selected frames and presence out."""

import math
import time
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.qos import ReliabilityPolicy
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import CompressedImage, Image

from norm_core.engines.errors import EngineFailedError
from norm_core.engines.providers import PROVIDER_ORDER, Provider, make_fault_reporter
from norm_core.records.frame import Frame
from norm_core.records.presence import Presence
from norm_core.records.status import Health
from norm_core.records.topics import FRAMES_TOPIC, PRESENCE_TOPIC
from norm_core.runtime.time import NS_PER_MS
from norm_monitor.eyes import Eyes
from norm_monitor.senses.camera.faults import LASTS_S, CameraFault, format_advice
from norm_monitor.senses.camera.frame_keeper import FrameConfig
from norm_monitor.senses.camera.picture import make_picture, parse_picture
from norm_monitor.senses.faces.finder import FaceFinder, FaceWeightsMissingError
from norm_nodes.base.convert import to_ros
from norm_nodes.base.endpoint import EVENTS, SENSOR
from norm_nodes.base.norm_node import STALE_AFTER_S, NodeConfig, NormNode
from norm_nodes.hri_faces import HriFaces
from norm_nodes.tracked_ids import HUMANS_PATTERN

# How often the status of the camera is updated.
WATCH_PERIOD_S = 1.0


class CameraNodeConfig(NodeConfig, FrameConfig):
    """The camera node's parameters."""

    topic: str = Field(default="/camera/image_raw/compressed", min_length=1, description="the camera's topic")
    transport: Literal["compressed", "raw"] = Field(
        default="compressed", description="compressed (CompressedImage) or raw (Image)"
    )
    stale_after_s: float = STALE_AFTER_S
    stamp_offset_ms: int = Field(
        default=0, ge=-2000, le=2000, description="milliseconds to add to the stamps of pictures"
    )
    faces: bool = Field(
        default=True, description="whether to detect faces; false if the node people publishes presence"
    )
    publish_hri: bool = Field(
        default=False, description="whether ids and boxes of faces are published as faces of REP-155 below humans"
    )
    humans: str = Field(default="/humans", pattern=HUMANS_PATTERN, description="namespace of faces, for publish_hri")
    left_after_s: float = Field(
        default=2.0, gt=0, le=600, description="time without a face until the person counts as gone"
    )
    face_providers: tuple[Provider, ...] = Field(
        default=("cpu",), description=f"ONNX Runtime providers for faces, {PROVIDER_ORDER}"
    )

    @field_validator("publish_hri")
    @classmethod
    def _check_publish_hri(cls, publishes: bool, info: ValidationInfo) -> bool:
        if publishes and not info.data.get("faces"):
            raise ValueError("it needs faces: true; set it to false")
        return publishes


class CameraNode(NormNode[CameraNodeConfig]):
    """Select frames by their stamps and detect faces in them. It identifies nobody and infers no emotion."""

    config_model = CameraNodeConfig

    def __init__(self) -> None:
        super().__init__("camera")

    def open(self) -> None:
        """Load the face models, advertise frames and presence, and subscribe to the camera."""
        config = self.config
        finder = self._load_finder() if config.faces else None
        offset_ns = config.stamp_offset_ms * NS_PER_MS
        self._eyes = Eyes(config.topic, self.health_log, config, finder, config.left_after_s, offset_ns=offset_ns)
        self._frames = self.advertise(Frame, FRAMES_TOPIC, EVENTS, "kept frames, by default one a second")
        if config.faces:
            self._presence = self.advertise(
                Presence, PRESENCE_TOPIC, EVENTS, "who is in front of the camera, for each kept frame"
            )
        self._hri_faces = HriFaces(self, config.humans, config.left_after_s) if config.publish_hri else None
        type_ = CompressedImage if config.transport == "compressed" else Image
        self._type = type_
        # Most images are dropped, so a raw subscription, whose pixels stay in place, avoids decoding the message.
        self._subscription = self.subscribe(type_, config.topic, self._on_image, SENSOR, "the camera", raw=True)
        self._arrived_s, self._stale_s = time.monotonic(), -math.inf
        self.repeat(WATCH_PERIOD_S, self._watch)

    def make_loss_events(self, topic: str, *, reported: bool = True) -> SubscriptionEventCallbacks:
        """Count lost images without an issue, as their stamps show whether a period lacks its frame."""
        return super().make_loss_events(topic, reported=reported and topic != self.config.topic)

    def start(self) -> None:
        """Accept images; the camera counts as stale from now on."""
        self._arrived_s = time.monotonic()

    def stop(self) -> None:
        """End the faces of REP-155."""
        if self._hri_faces:
            self._hri_faces.clear()

    def close(self) -> None:
        """Drop the face models."""
        del self._eyes

    def _load_finder(self) -> FaceFinder | None:
        config = self.config
        try:
            return FaceFinder(
                providers=config.face_providers,
                on_fault=make_fault_reporter(self.health_log, "faces", "face_providers of camera"),
            )
        except (FaceWeightsMissingError, EngineFailedError) as error:
            self.health_log.state_issue("faces", f"camera: no faces are detected, because {error}")
            return None

    def _on_image(self, data: bytes) -> None:
        if not self.is_active:
            return
        self._arrived_s = time.monotonic()
        self.health_log.count("images_received")
        self._eyes.keeper.sampler.set_rate(self.config.keep_hz)
        picture = parse_picture(data, compressed=self._type is CompressedImage)
        for record in self._eyes.take(picture or make_picture(deserialize_message(data, self._type))):
            if isinstance(record, Frame):
                self.health_log.count("frames_kept")
                self._frames.publish(to_ros(record))
            else:
                self._presence.publish(to_ros(record))
                if self._hri_faces:
                    self._hri_faces.publish(record)

    def _watch(self) -> None:
        """Update the status; no frame depends on it."""
        if not self.is_active:
            return
        topic, now_s = self._subscription.topic_name, time.monotonic()
        mismatch = self.describe_wrong_type(topic, f"sensor_msgs/msg/{self._type.__name__}")
        remedy = "correct transport of camera, or name a topic of images in topic"
        self.health_log.state_issue("type", f"{topic}: {mismatch}; {remedy}" if mismatch else "", Health.STALE)
        is_stale = 0 < self.config.stale_after_s < now_s - self._arrived_s
        self._stale_s = now_s if is_stale else self._stale_s
        self._state_while(CameraFault.STALE, is_stale and not mismatch)
        self._state_while(CameraFault.TWO_PUBLISHERS, self.count_publishers(topic) > 1)
        # A gap in the stamps after an absence of the camera is not a loss.
        is_lossy = self.health_log.has_issue(CameraFault.STAMP_GAP.value) and now_s - self._stale_s > LASTS_S
        risks_loss = self.config.transport == "raw" and is_lossy
        publishers = self.get_publishers_info_by_topic(topic) if risks_loss else ()
        is_best_effort = any(
            publisher.qos_profile.reliability is ReliabilityPolicy.BEST_EFFORT for publisher in publishers
        )
        self._state_while(CameraFault.RAW_BEST_EFFORT, is_best_effort)

    def _state_while(self, fault: CameraFault, is_present: bool) -> None:
        """State a fault while it is present, and count it each time it begins."""
        health = Health.STALE if fault is CameraFault.STALE else Health.DEGRADED
        if not is_present:
            self.health_log.clear_issue(fault.value)
        elif self.health_log.raise_issue(fault.value, health, format_advice(fault, self._subscription.topic_name)):
            self.health_log.count(fault.value)
