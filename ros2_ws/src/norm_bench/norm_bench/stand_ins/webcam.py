"""Publish this machine's own camera, so that Tactful can be tried without a robot."""

import os
import time
from pathlib import Path

import cv2
from norm_nodes.base.endpoint import EVENTS
from pydantic import Field
from sensor_msgs.msg import CompressedImage

from norm_bench.stand_ins.publisher_node import PublisherNode
from norm_core.records.stamps import split_stamp
from norm_core.records.status import Health
from norm_core.runtime.config import Config

# How long the node waits before it tries an absent camera again.
RETRY_S = 5.0


class WebcamConfig(Config):
    """The parameters of the node webcam."""

    device: str = Field("/dev/video0", min_length=1, description="the camera's device")
    topic: str = Field("/webcam/image/compressed", min_length=1, description="topic of the pictures")
    rate_hz: float = Field(5.0, gt=0, le=30, description="pictures a second")
    width_px: int = Field(640, ge=160, le=3840, description="image width to request from the camera")
    jpeg_quality: int = Field(85, ge=10, le=100, description="quality of the JPEG pictures")


class WebcamNode(PublisherNode[WebcamConfig]):
    """Publish a camera's pictures. Retry every few seconds if the camera is missing."""

    config_model = WebcamConfig

    def __init__(self) -> None:
        super().__init__("webcam")

    def open(self) -> None:
        """Advertise the topic."""
        self._pictures = self.advertise(CompressedImage, self.config.topic, EVENTS, "the pictures of this camera")

    def publish_until_halted(self) -> None:
        """Publish pictures while the camera delivers them, and reopen it when it stops."""
        while not self.halt.is_set():
            problem = find_problem(Path(self.config.device)) or self._publish_pictures()
            if problem:
                self.health_log.raise_issue("camera", Health.STALE, f"webcam: {problem}")
                self.halt.wait(RETRY_S)

    def _publish_pictures(self) -> str:
        config = self.config
        camera = cv2.VideoCapture(config.device)
        camera.set(cv2.CAP_PROP_FRAME_WIDTH, config.width_px)
        due_s = time.monotonic()
        try:
            while not self.halt.wait(max(0.0, due_s - time.monotonic())):
                due_s = max(due_s + 1 / config.rate_hz, time.monotonic())
                is_read, picture = camera.read()
                stamp_ns = self.clock.now_ns()
                if not is_read:
                    return f"{config.device}: gives no picture; close other programs that use it, or set device"
                self.health_log.clear_issue("camera")
                _, jpeg = cv2.imencode(".jpg", picture, (cv2.IMWRITE_JPEG_QUALITY, config.jpeg_quality))
                message = CompressedImage(format="jpeg", data=jpeg.tobytes())
                message.header.stamp.sec, message.header.stamp.nanosec = split_stamp(stamp_ns)
                self._pictures.publish(message)
                self.health_log.count("pictures_published")
        finally:
            camera.release()
        return ""


def find_problem(device: Path) -> str:
    """Return why a device cannot be opened and what to do, or an empty string."""
    if not device.exists():
        return f"{device}: there is no such camera; plug one in, or set device to one of /dev/video*"
    if not os.access(device, os.R_OK | os.W_OK):
        return f"{device}: no permission to use this camera; run sudo usermod -aG video $USER and log in again"
    return ""
