"""People before the camera: face boxes and head directions. No field names a person or an emotion."""

from enum import StrEnum

from norm_core.records.record import record


class PresenceState(StrEnum):
    """The state of presence before the camera."""

    ABSENT = "absent"
    PRESENT = "present"
    LOST = "lost"  # visible a moment ago, but not in this frame
    LEFT = "left"  # lost for long enough; published once, then ABSENT


@record
class Face:
    """One face. The box is in fractions of the frame; an angle is None if it could not be measured."""

    left_ratio: float
    top_ratio: float
    width_ratio: float
    height_ratio: float
    confidence: float
    yaw_deg: float | None = None  # positive: the nose points to the image's right
    pitch_deg: float | None = None  # positive: the nose points up
    roll_deg: float | None = None  # positive: the head is tilted clockwise in the image
    looking_away: bool = False


class Engagement(StrEnum):
    """The engagement levels of REP-155."""

    UNKNOWN = "unknown"
    DISENGAGED = "disengaged"
    ENGAGING = "engaging"
    ENGAGED = "engaged"
    DISENGAGING = "disengaging"


class Gaze(StrEnum):
    """The direction of a person's gaze."""

    UNKNOWN = "unknown"
    AT_ROBOT = "at_robot"
    ELSEWHERE = "elsewhere"


@record
class Person:
    """A person tracked by the robot's own recognizers; None means that they do not report the value."""

    person_id: str
    distance_m: float | None = None  # distance from the robot's base
    engagement: Engagement = Engagement.UNKNOWN
    gaze: Gaze = Gaze.UNKNOWN


@record
class Presence:
    """The people present, from one stored frame (largest face first) or from the robot's own person tracking."""

    stamp_ns: int
    frame_id: str = ""
    source_topic: str
    state: PresenceState
    faces: tuple[Face, ...] = ()
    persons: tuple[Person, ...] = ()
    since_ns: int | None = None  # when this person or group came; None while absent
    last_seen_ns: int | None = None  # None before anybody was seen
    away_since_ns: int | None = None  # since when every face looks away; None if any face does not
