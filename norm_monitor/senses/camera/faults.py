"""Faults of a camera's messages: the counter, the cause and the remedy of each."""

from enum import StrEnum

from norm_core.records.record import record
from norm_core.records.status import Health
from norm_core.runtime.health_log import HealthLog

LASTS_S = 10.0  # after this long without a recurrence, a fault is only counted


class CameraFault(StrEnum):
    """The kinds of camera faults."""

    STAMP_GAP = "stamp_gaps"
    DUPLICATE = "duplicate_stamps"
    REORDERED = "reordered_stamps"
    JUMPED_BACK = "stamps_jumped_back"
    JUMPED_FORWARD = "stamps_jumped_forward"
    DECODE_FAILED = "decode_failures"
    ZERO_SIZE = "zero_size_images"
    UNKNOWN_ENCODING = "unknown_encodings"
    SOURCE_CHANGED = "source_changes"
    TWO_PUBLISHERS = "two_publishers"
    RAW_BEST_EFFORT = "raw_best_effort"
    STALE = "stale_input"


@record
class Advice:
    """The problem, cause and remedy of a fault."""

    cause: str
    mend: str


ADVICE: dict[CameraFault, Advice] = {
    CameraFault.STAMP_GAP: Advice(
        cause="frames are lost on the way: best-effort raw images over the default shared memory lose most of theirs",
        mend="subscribe to the compressed topic, or publish reliably",
    ),
    CameraFault.DUPLICATE: Advice(
        cause="the same stamp came twice, as from a relay or a bag played beside the camera",
        mend="end one of the two, or let the driver stamp each frame",
    ),
    CameraFault.REORDERED: Advice(
        cause="stamps went back a little, as over a lossy network or from two publishers",
        mend="look for a second publisher with ros2 topic info -v",
    ),
    CameraFault.JUMPED_BACK: Advice(
        cause="stamps went back far: a clock was set, or a bag began anew",
        mend="synchronise the clocks (chrony); after a bag's restart nothing need be done",
    ),
    CameraFault.JUMPED_FORWARD: Advice(
        cause="stamps went forward far: a clock was set, or the camera was away",
        mend="synchronise the clocks (chrony), and look at the camera's cable and driver",
    ),
    CameraFault.DECODE_FAILED: Advice(
        cause="the bytes are no whole picture: a bad cable, a full USB bus or a wrong step",
        mend="look at the driver's log, and lower the resolution or the rate",
    ),
    CameraFault.ZERO_SIZE: Advice(cause="the driver publishes before its camera gives pictures", mend="restart it"),
    CameraFault.UNKNOWN_ENCODING: Advice(
        cause="the encoding is none that is decoded here, as depth or video",
        mend="set the driver to rgb8 or bgr8, or use the compressed topic (jpeg or png)",
    ),
    CameraFault.SOURCE_CHANGED: Advice(
        cause="frame_id, size or encoding changed between messages: two publishers, or a camera set anew",
        mend="give each camera a topic of its own",
    ),
    CameraFault.TWO_PUBLISHERS: Advice(
        cause="more than one publisher is on the camera's topic", mend="end one, or remap it to a topic of its own"
    ),
    CameraFault.RAW_BEST_EFFORT: Advice(
        cause="raw images are published best effort, and over the default shared memory most of such frames are lost",
        mend="set transport to compressed and topic to the compressed one, or publish reliably",
    ),
    CameraFault.STALE: Advice(
        cause="no picture has come of late: the camera or its driver has stopped, or the topic's name is another",
        mend="look at the driver, at ros2 topic hz, and at ROS_DOMAIN_ID",
    ),
}


def advice_for(fault: CameraFault) -> str:
    """Return the problem, the cause and the remedy of a fault, without figures."""
    return f"{fault.value.replace('_', ' ')}: {ADVICE[fault].cause}; {ADVICE[fault].mend}"


def log_fault(health_log: HealthLog, fault: CameraFault, detail: str = "") -> None:
    """Count a fault, and show it with its cause and remedy for a while."""
    health_log.count(fault.value)
    health_log.raise_issue(fault.value, Health.DEGRADED, advice_for(fault), latest=detail, lasting_s=LASTS_S)
