"""The faults of camera messages, each with its counter, problem and remedy."""

from enum import StrEnum

from norm_core.health.health_log import HealthLog
from norm_core.records.record import record
from norm_core.records.status import Health
from norm_core.runtime.program import PROGRAM

IMAGE_TYPES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")

LASTS_S = 10.0  # after this long without a recurrence, a fault is only counted


class CameraFault(StrEnum):
    """The kinds of camera faults."""

    STAMP_GAP = "stamp_gaps"
    NO_STAMP = "absent_stamps"
    DUPLICATE = "duplicate_stamps"
    REORDERED = "reordered_stamps"
    JUMPED_BACK = "stamps_jumped_back"
    JUMPED_FORWARD = "stamps_jumped_forward"
    DECODE_FAILED = "decode_failures"
    ZERO_SIZE = "zero_size_images"
    UNKNOWN_ENCODING = "unknown_encodings"
    TWO_PUBLISHERS = "two_publishers"
    RAW_BEST_EFFORT = "raw_best_effort"
    STALE = "stale_input"


@record
class Advice:
    """How the status words a camera fault, and its remedy."""

    problem: str
    remedy: str


ADVICE: dict[CameraFault, Advice] = {
    CameraFault.STAMP_GAP: Advice(
        problem="frames are missing, because they were lost on the way or the driver's timer is irregular",
        remedy="check the rate at the driver; if it is steady, use the compressed topic or publish reliably",
    ),
    CameraFault.NO_STAMP: Advice(
        problem="an image has no usable stamp",
        remedy="let the driver stamp each frame",
    ),
    CameraFault.DUPLICATE: Advice(
        problem="a stamp came twice, for example from a relay or from a bag that is played at the same time",
        remedy="stop one of the two publishers, or let the driver stamp each frame",
    ),
    CameraFault.REORDERED: Advice(
        problem="a frame came after a newer one, for example over a lossy network or from two publishers",
        remedy="stop any second publisher, and prefer a wired network",
    ),
    CameraFault.JUMPED_BACK: Advice(
        problem="the stamps jumped into the past, because a clock was set or a bag was restarted",
        remedy="synchronise the clocks (chrony); after the restart of a bag, do nothing",
    ),
    CameraFault.JUMPED_FORWARD: Advice(
        problem="the stamps jumped into the future, because a clock was set or the camera was disconnected",
        remedy="synchronise the clocks (chrony), and check the camera's cable and driver",
    ),
    CameraFault.DECODE_FAILED: Advice(
        problem="an image cannot be decoded, because of a bad cable, a full USB bus or a wrong step field",
        remedy="read the driver's log, and lower the resolution or the rate",
    ),
    CameraFault.ZERO_SIZE: Advice(
        problem="an image has no pixels, because the driver publishes before its camera is ready",
        remedy="restart the driver",
    ),
    CameraFault.UNKNOWN_ENCODING: Advice(
        problem="the encoding is not supported, for example that of depth images or video",
        remedy="set the driver to rgb8 or bgr8, or use the compressed topic (JPEG or PNG)",
    ),
    CameraFault.TWO_PUBLISHERS: Advice(
        problem="the topic has more than one publisher", remedy="stop one, or remap it to another topic"
    ),
    CameraFault.RAW_BEST_EFFORT: Advice(
        problem="raw images are published best effort, and so many are lost that frames are missing",
        remedy="set transport to compressed and topic to the compressed topic, or publish reliably",
    ),
    CameraFault.STALE: Advice(
        problem="no image has arrived for a while: the camera or its driver stopped, or the topic has another name",
        remedy=f"check the driver, the parameter topic and ROS_DOMAIN_ID; {PROGRAM} doctor lists the camera topics",
    ),
}


def format_advice(fault: CameraFault, topic: str) -> str:
    """Return the topic, its problem and the remedy, without figures."""
    return f"{topic}: {ADVICE[fault].problem}; {ADVICE[fault].remedy}"


def log_fault(health_log: HealthLog, topic: str, fault: CameraFault, detail: str = "") -> None:
    """Count a fault, and state it for a while with its remedy."""
    health_log.count(fault.value)
    health_log.raise_issue(fault.value, Health.DEGRADED, format_advice(fault, topic), detail=detail, lasting_s=LASTS_S)
