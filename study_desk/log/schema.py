"""What a study log holds: one entry a line, each with one of these records."""

from dataclasses import replace
from enum import StrEnum
from typing import Any

from norm_core.records.decision import Decision
from norm_core.records.flag import Attribute, Polarity, Severity, SocialFlag, Verdict
from norm_core.records.presence import Presence
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Speaker, Utterance

SCHEMA = 3
# The first whose entries can be erased; a log of it or a later one is written on as it is.
FIRST_ERASABLE = 2

# A participant is one of these, never a name.
MONITOR = "monitor"


@record
class BagRef:
    """The bag a session was recorded in; offset_ns is the stamp of its first message.

    Where the log was written live, the bag was not complete yet: an entry of its own names it later.
    """

    name: str
    sha256: str
    offset_ns: int


@record
class Participant:
    """One person of the study, by pseudonym; person_ids are what the senses call them in this session."""

    pseudonym: str
    person_ids: tuple[str, ...] = ()
    clips: bool = False  # whether they consented to clips of their face and voice
    transcript: bool = True  # whether they consented to their words being kept


@record
class SessionInfo:
    """Whose session this is and how it was made; the first entry of every log."""

    study: str
    session: str
    condition: str = ""
    participants: tuple[Participant, ...] = ()
    robot: str = ""
    site: str = ""
    locale: str = ""
    deployment_context: str = ""
    bag: BagRef | None = None
    media: tuple[str, ...] = ()
    start_ns: int | None = None  # ROS time; None where it is that of the first entry
    end_ns: int | None = None
    retention_days: int | None = None  # None: none was stated
    table_version: str = ""
    config_sha256: str = ""
    software_version: str = ""
    migrated_from: str = ""  # the head hash of the older log this one was made from


@record
class Review:
    """A reviewer's word on one event; a later one by the same reviewer replaces it when read, never on disk."""

    event_id: str
    reviewer: str
    verdict: Verdict
    polarity: Polarity | None = None
    attributes: tuple[Attribute, ...] = ()
    severity: Severity | None = None
    note: str = ""
    blind: bool = False  # given without sight of the monitor's label

    def __post_init__(self) -> None:
        if not self.reviewer:
            raise ValueError("a verdict needs a reviewer: give a pseudonym")
        if self.verdict is Verdict.RELABEL and not self.attributes:
            raise ValueError("a relabelled event needs at least one attribute")


@record
class Label:
    """One stretch with one attribute, as a coder or the monitor sees it; zero length is an instant."""

    start_ns: int
    end_ns: int
    polarity: Polarity
    attribute: Attribute
    coder: str = MONITOR
    code: str = ""  # the cue, where the monitor saw it
    severity: Severity | None = None
    probability: float | None = None
    event_id: str = ""
    comment: str = ""

    def __post_init__(self) -> None:
        if self.end_ns < self.start_ns:
            raise ValueError(f"a label ends at {self.end_ns} ns, before it begins at {self.start_ns} ns")


@record
class Coding:
    """A coder's word that they coded the whole session; labels counts theirs in the log then, 0 where none was found.

    A later one by the same coder replaces it when read, never on disk.
    """

    coder: str
    labels: int

    def __post_init__(self) -> None:
        if not self.coder:
            raise ValueError("a coding needs a coder: give a pseudonym")


@record
class Tombstone:
    """Which entries were emptied, for whom and why; their hashes stay, so that the chain still holds."""

    participant: str
    seqs: tuple[int, ...]
    reason: str


@record
class Recovered:
    """A writer died: the bytes of the entry it was writing were set aside. Or: what of an older log was lost."""

    torn_bytes: int
    lost: tuple[str, ...] = ()


@record
class Closed:
    """The recording ended as it should; reviews may still follow."""

    entries: int


class Kind(StrEnum):
    SESSION = "session"
    FLAG = "flag"
    DECISION = "decision"
    UTTERANCE = "utterance"
    ROBOT_SPEECH = "robot_speech"
    PRESENCE = "presence"
    REVIEW = "review"
    LABEL = "label"
    CODING = "coding"
    TOMBSTONE = "tombstone"
    RECOVERED = "recovered"
    CLOSED = "closed"
    BAG = "bag"


# What may follow the end of a recording without being part of it.
AFTERWARDS = {Kind.REVIEW, Kind.LABEL, Kind.CODING, Kind.TOMBSTONE, Kind.RECOVERED, Kind.BAG}

RECORDS: dict[Kind, type] = {
    Kind.SESSION: SessionInfo,
    Kind.FLAG: SocialFlag,
    Kind.DECISION: Decision,
    Kind.UTTERANCE: Utterance,
    Kind.ROBOT_SPEECH: RobotSpeech,
    Kind.PRESENCE: Presence,
    Kind.REVIEW: Review,
    Kind.LABEL: Label,
    Kind.CODING: Coding,
    Kind.TOMBSTONE: Tombstone,
    Kind.RECOVERED: Recovered,
    Kind.CLOSED: Closed,
    Kind.BAG: BagRef,
}
KINDS = {cls: kind for kind, cls in RECORDS.items()}


@record
class Entry:
    """One line of a log as read; record is None where it was erased."""

    seq: int
    kind: Kind
    wall_ns: int
    ros_ns: int
    record: Any
    file: str = ""
    line: int = 0


def renumbered(record: Any) -> Any:
    """A record as it may stand in another log: a tombstone names none of the new log's entries."""
    return replace(record, seqs=()) if isinstance(record, Tombstone) else record


def persons_in(record: Any) -> set[str]:
    """The person ids that a record names."""
    match record:
        case Utterance():
            found = {record.speaker_id} if record.speaker is not Speaker.ROBOT else set()
        case SocialFlag():
            found = {record.person_id}
        case Presence():
            found = {person.person_id for person in record.persons}
        case _:
            found = set()
    return found - {""}
