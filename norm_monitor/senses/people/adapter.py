"""Turn the person tracking of the robot (REP-155) into presence at a bounded rate.

Messages come in order of arrival. The presence at a time depends on stamps alone: it is published once a stamp is later
by the settling time. So the messages of that time give the same presence in any order.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

from pydantic import Field

from norm_core.records.presence import Engagement, Face, Gaze, Person, Presence
from norm_core.records.stamps import join_stamp
from norm_core.runtime.config import LIVE, Config
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.senses.faces.presence_tracker import PresenceTracker
from norm_monitor.senses.people.transforms import StampedValues, TransformError, TransformTree

# The number of persons of whom values are stored.
MAX_KNOWN = 128
# How many persons are published at a time.
MAX_PERSONS = 32
# The length of the id of a person or frame.
MAX_ID_CHARACTERS = 200
# A stamp this far from the newest is of another timeline.
JUMP_NS = 60 * NS_PER_S
# Number of transforms of another timeline in a row that count as a jump.
STRAYS_IN_A_ROW = 50

# The levels of engagement in the order of their numbers in REP-155.
_LEVELS = tuple(Engagement)
_AWAY_LEVELS = (Engagement.DISENGAGED, Engagement.DISENGAGING)


class NotPeopleError(ValueError):
    """A message has none of the fields expected on its topic."""


class PeopleConfig(Config):
    """The settings by which messages about people become presence."""

    rate_hz: float = Field(
        default=5.0,
        ge=0.1,
        le=30,
        description="maximum number of presence messages per second of stamp time",
        json_schema_extra=LIVE,
    )
    settle_s: float = Field(default=0.5, ge=0, le=2, description="longest delay of one topic's stamps behind another's")
    left_after_s: float = Field(
        default=2.0, gt=0, le=600, description="time without anybody until the person counts as gone"
    )
    believed_s: float = Field(
        default=2.0, gt=0, le=600, description="how long a gaze or position is valid without an update"
    )
    forgotten_after_s: float = Field(
        default=10.0, gt=0, le=3600, description="time without a message until a tracked person counts as gone"
    )
    base_frame: str = Field(default="base_link", min_length=1, description="frame from which distances are measured")


class _PersonValues:
    """The values that are known of one person or face."""

    def __init__(self) -> None:
        self.face: StampedValues[Face] = StampedValues()
        self.engagement: StampedValues[Engagement] = StampedValues()
        self.gaze: StampedValues[Gaze] = StampedValues()


class PeopleAdapter:
    """A converter of messages about people into presences. Each message returns the presences that are then final.

    Until there is a list of persons, presence is that of the listed faces.
    """

    def __init__(self, config: PeopleConfig, source_topic: str) -> None:
        """`source_topic` is that of the list of persons."""
        self.counts: Counter[str] = Counter()
        self._config = config
        self._source_topic = source_topic
        self._settle_ns = s_to_ns(config.settle_s)
        self.set_rate(config.rate_hz)
        self._believed_ns = s_to_ns(config.believed_s)
        self._forgotten_ns = s_to_ns(config.forgotten_after_s)
        self._tree = TransformTree()
        self._anchors: dict[str, str] = {}
        self._restart()

    def set_rate(self, rate_hz: float) -> None:
        """Return presences at another rate from now on."""
        self._period_ns = s_to_ns(1 / rate_hz)

    def _restart(self) -> None:
        self._strays = 0
        self._now_ns: int | None = None
        self._published_ns: int | None = None
        self._due: set[int] = set()
        self._ids: StampedValues[tuple[str, ...]] = StampedValues()
        self._face_ids: StampedValues[tuple[str, ...]] = StampedValues()
        self._known: dict[str, _PersonValues] = {}
        self._tracker = PresenceTracker(self._config.left_after_s)
        self._tree.drop_moving_frames()

    @property
    def tracked_ids(self) -> tuple[str, ...]:
        """The people in the newest list."""
        return self._ids.newest() or ()

    @property
    def tracked_face_ids(self) -> tuple[str, ...]:
        """The faces in the newest list."""
        return self._face_ids.newest() or ()

    def ids(self, message: Any, arrival_ns: int, *, of_faces: bool = False) -> list[Presence]:
        """Take the list of tracked people, or that of faces."""
        _require_fields(message, "ids")
        ids_in_message = tuple(dict.fromkeys(self._read_id(raw_id) for raw_id in message.ids if raw_id))
        excess = len(ids_in_message) - MAX_PERSONS
        if excess > 0:
            self.counts["persons_over_limit"] += excess
            ids_in_message = ids_in_message[:MAX_PERSONS]
        stamp_ns = self._advance_by(message, arrival_ns)
        (self._face_ids if of_faces else self._ids).put(stamp_ns, ids_in_message)
        return self._take_settled()

    def face(self, face_id: str, message: Any, arrival_ns: int) -> list[Presence]:
        """Take the box of one face, in fractions of the picture."""
        _require_fields(message, "xmin", "ymin", "xmax", "ymax", "c")
        left, top, right, bottom = map(float, (message.xmin, message.ymin, message.xmax, message.ymax))
        if not (0 <= left <= right <= 1 and 0 <= top <= bottom <= 1 and 0 <= message.c <= 1):
            raise NotPeopleError(f"the box of face {face_id} is not in fractions of the picture")
        stamp_ns, confidence = self._advance_by(message, arrival_ns), float(message.c)
        width, height = right - left, bottom - top
        box = Face(left_ratio=left, top_ratio=top, width_ratio=width, height_ratio=height, confidence=confidence)
        self._get_person(face_id).face.put(stamp_ns, box)
        return self._take_settled()

    def engagement(self, person_id: str, message: Any, arrival_ns: int) -> list[Presence]:
        """Take the engagement of one person. A level outside REP-155 is counted, and unknown."""
        _require_fields(message, "level")
        level = int(message.level)
        if level >= len(_LEVELS):
            self.counts["engagement_levels_unknown"] += 1
        stamp_ns = self._advance_by(message, arrival_ns)
        self._get_person(person_id).engagement.put(
            stamp_ns, _LEVELS[level] if level < len(_LEVELS) else Engagement.UNKNOWN
        )
        return self._take_settled()

    def gaze(self, message: Any, arrival_ns: int) -> list[Presence]:
        """Take who looks at whom. The robot has the empty id, and its own gaze is ignored."""
        _require_fields(message, "sender", "receiver")
        stamp_ns = self._advance_by(message, arrival_ns)
        if message.sender:
            gaze = Gaze.ELSEWHERE if message.receiver else Gaze.AT_ROBOT
            self._get_person(self._read_id(message.sender)).gaze.put(stamp_ns, gaze)
        return self._take_settled()

    def anchor(self, person_id: str, message: Any) -> None:
        """Take the frame of a person's position. It has no stamp, and holds until the next one."""
        _require_fields(message, "data")
        self._anchors.pop(person_id, None)
        self._anchors[person_id] = self._read_id(message.data)
        while len(self._anchors) > MAX_KNOWN:
            self._anchors.pop(next(iter(self._anchors)))
            self.counts["persons_evicted"] += 1

    def transforms(self, message: Any, static: bool = False) -> list[Presence]:
        """Take a tf message. A transform that is invalid or of another timeline is counted and skipped."""
        _require_fields(message, "transforms")
        for transform in message.transforms:
            stamp_ns = join_stamp(int(transform.header.stamp.sec), int(transform.header.stamp.nanosec))
            is_moving = bool(stamp_ns) and not static
            if is_moving and self._is_stray(stamp_ns):
                self.counts["transforms_wrong_time"] += 1
                continue
            try:
                self._tree.put(transform, static)
            except TransformError:
                self.counts["transforms_unusable"] += 1
                continue
            if is_moving:
                self._advance(stamp_ns)
        return self._take_settled()

    def flush(self) -> list[Presence]:
        """Return the presences that still wait for the settling time, for example at the end of a bag."""
        return self._make_presences(sorted(self._due))

    def _advance_by(self, message: Any, arrival_ns: int) -> int:
        """Return the stamp of a message, which advances the time, or starts a new timeline after a jump."""
        stamp = message.header.stamp if hasattr(message, "header") else None
        stamp_ns = join_stamp(int(stamp.sec), int(stamp.nanosec)) if stamp else 0
        if not stamp_ns:
            self.counts["messages_unstamped"] += 1
            stamp_ns = arrival_ns
        self._handle_jump(stamp_ns)
        self._advance(stamp_ns)
        return stamp_ns

    def _handle_jump(self, stamp_ns: int) -> None:
        """Reset after a jump back. After a jump forward, known values hold until they expire."""
        if self._now_ns is None or abs(stamp_ns - self._now_ns) <= JUMP_NS:
            return
        self.counts["stamps_jumped"] += 1
        if stamp_ns < self._now_ns:
            self._restart()

    def _is_stray(self, stamp_ns: int) -> bool:
        """Whether a transform is of another timeline. Single ones are common in tf; many in a row are a jump."""
        if self._now_ns is None or abs(stamp_ns - self._now_ns) <= JUMP_NS:
            self._strays = 0
            return False
        self._strays += 1
        if self._strays < STRAYS_IN_A_ROW:
            return True
        self._strays = 0
        self._handle_jump(stamp_ns)
        return False

    def _advance(self, stamp_ns: int) -> None:
        """Move the time on to a stamp, and note the presence that it makes due."""
        due_ns = -(-stamp_ns // self._period_ns) * self._period_ns
        if self._published_ns is None or due_ns > self._published_ns:
            self._due.add(due_ns)
        else:
            self.counts["messages_late"] += 1  # it still affects later presence
        self._now_ns = stamp_ns if self._now_ns is None else max(self._now_ns, stamp_ns)

    def _take_settled(self) -> list[Presence]:
        if self._now_ns is None:
            return []
        certain_ns = self._now_ns - self._settle_ns
        return self._make_presences(sorted(due_ns for due_ns in self._due if due_ns <= certain_ns))

    def _make_presences(self, due: list[int]) -> list[Presence]:
        presences: list[Presence] = []
        for due_ns in due:  # before the first list, it is unknown whether anybody is present
            if persons := self._ids.value_at(due_ns):
                presences.append(self._make_presence(due_ns, *persons))
            elif faces := self._face_ids.value_at(due_ns):
                presences.append(self._make_face_presence(due_ns, *faces))
        if due:
            self._published_ns = due[-1]
            self._due.difference_update(due)
        return presences

    def _make_presence(self, at_ns: int, listed_ns: int, ids: tuple[str, ...]) -> Presence:
        persons: list[Person] = []
        for person_id in sorted(ids):
            if at_ns - self._find_last_update_ns(person_id, at_ns, listed_ns) > self._forgotten_ns:
                self.counts["persons_timed_out"] += 1
            else:
                persons.append(self._make_person(person_id, at_ns))
        step = self._tracker.step(at_ns, self._source_topic, [_is_away(person) for person in persons])
        return replace(step, frame_id=self._config.base_frame, persons=tuple(persons))

    def _make_face_presence(self, at_ns: int, listed_ns: int, ids: tuple[str, ...]) -> Presence:
        if at_ns - listed_ns > self._forgotten_ns:
            self.counts["persons_timed_out"] += len(ids)
            ids = ()
        values = [self._known[face_id].face.value_at(at_ns) for face_id in ids if face_id in self._known]
        faces = sorted((value[1] for value in values if value), key=lambda face: -face.width_ratio * face.height_ratio)
        topic = self._source_topic.replace("/persons/", "/faces/")
        return replace(self._tracker.step(at_ns, topic, [False] * len(ids)), faces=tuple(faces))

    def _make_person(self, person_id: str, at_ns: int) -> Person:
        person = self._known.get(person_id)
        engagement = person.engagement.value_at(at_ns) if person else None
        gaze = person.gaze.value_at(at_ns) if person else None
        distance_m = self._tree.ground_distance_m(
            self._anchor(person_id), self._config.base_frame, at_ns, self._believed_ns
        )
        return Person(
            person_id=person_id,
            distance_m=distance_m,
            engagement=engagement[1] if engagement else Engagement.UNKNOWN,
            gaze=gaze[1] if gaze and at_ns - gaze[0] <= self._believed_ns else Gaze.UNKNOWN,
        )

    def _find_last_update_ns(self, person_id: str, at_ns: int, listed_ns: int) -> int:
        person = self._known.get(person_id)
        values = [person.engagement.value_at(at_ns), person.gaze.value_at(at_ns)] if person else []
        placed_ns = self._tree.newest_ns(self._anchor(person_id), at_ns)
        return max([listed_ns, placed_ns or 0, *(value[0] for value in values if value)])

    def _anchor(self, person_id: str) -> str:
        # The default frame of a person in REP-155.
        return self._anchors.get(person_id) or f"person_{person_id}"

    def _read_id(self, raw_id: Any) -> str:
        text = str(raw_id)
        if len(text) > MAX_ID_CHARACTERS:
            self.counts["texts_cut"] += 1
        return text[:MAX_ID_CHARACTERS]

    def _get_person(self, person_id: str) -> _PersonValues:
        person = self._known.pop(person_id, None) or _PersonValues()
        self._known[person_id] = person  # move to the end: the least recently updated is dropped first
        while len(self._known) > MAX_KNOWN:
            self._known.pop(next(iter(self._known)))
            self.counts["persons_evicted"] += 1
        return person


def _is_away(person: Person) -> bool:
    """Whether a person looks away: by gaze, or if that is unknown by engagement, which follows gaze slowly."""
    if person.gaze is Gaze.UNKNOWN:
        return person.engagement in _AWAY_LEVELS
    return person.gaze is Gaze.ELSEWHERE


def _require_fields(message: Any, *names: str) -> None:
    """Raise NotPeopleError if a message lacks one of these fields."""
    if not all(hasattr(message, name) for name in names):
        raise NotPeopleError(f"{type(message).__name__} lacks one of the fields {', '.join(names)}")
