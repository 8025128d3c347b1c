"""Who is before the camera: faces by box and head direction. Nothing here names a person or reads an emotion."""

from enum import StrEnum

from norm_core.records.record import record


class PresenceState(StrEnum):
    ABSENT = "absent"
    PRESENT = "present"
    LOST = "lost"  # there a moment ago, and not in this frame
    LEFT = "left"  # lost for long enough; stated once, then absent


@record
class Face:
    """One face; its box in shares of the frame, its angles None where they could not be measured."""

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
    """As REP-155 has it."""

    UNKNOWN = "unknown"
    DISENGAGED = "disengaged"
    ENGAGING = "engaging"
    ENGAGED = "engaged"
    DISENGAGING = "disengaging"


class Gaze(StrEnum):
    UNKNOWN = "unknown"
    AT_ROBOT = "at_robot"
    ELSEWHERE = "elsewhere"


@record
class Person:
    """Somebody whom the robot's own recognisers track; None is what they do not tell."""

    person_id: str
    distance_m: float | None = None  # from the robot's base
    engagement: Engagement = Engagement.UNKNOWN
    gaze: Gaze = Gaze.UNKNOWN


@record
class Presence:
    """Who is there: from one kept frame, the largest face first, or as the robot's own recognisers track people."""

    stamp_ns: int
    frame_id: str = ""
    source_topic: str
    state: PresenceState
    faces: tuple[Face, ...] = ()
    persons: tuple[Person, ...] = ()
    since_ns: int | None = None  # when this person, or group, came; None while absent
    last_seen_ns: int | None = None  # None where nobody was seen yet
    away_since_ns: int | None = None  # since when every face looks away; None where one does not
