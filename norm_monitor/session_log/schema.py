"""The records of a study log, one entry per line, and the media files that a session names."""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from norm_core.records.decision import Decision
from norm_core.records.flag import Attribute, Polarity, Severity, SocialFlag, Verdict
from norm_core.records.presence import Presence
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Speaker, Utterance

# The version of the log's format.
SCHEMA = 6

# The coder of the monitor's own labels; other coders have pseudonyms.
MONITOR = "monitor"
# The coder of what coders agreed on together, in a file of theirs. Agreement leaves it out.
CONSENSUS = "consensus"

# A number of seconds in a media option.
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")


@record
class BagRef:
    """The bag of a session. `offset_ns` is the stamp of its first message.

    A live log names the bag later, in a separate entry, because the bag is incomplete until then.
    """

    name: str
    sha256: str
    offset_ns: int


@record
class Participant:
    """A participant by pseudonym. `person_ids` are the ids that the senses gave them in this session."""

    pseudonym: str
    person_ids: tuple[str, ...] = ()
    transcript: bool = True  # consent to storing their words


@record
class SessionInfo:
    """The session and its settings; the first entry of every log."""

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
    start_ns: int | None = None  # ROS time; None: that of the first entry
    end_ns: int | None = None
    retention_days: int | None = None  # None: not stated
    table_version: str = ""
    weighed_by: str = ""  # the monitor's sensitivity and limit of an answer, as it began
    config_sha256: str = ""
    software_version: str = ""
    migrated_from: str = ""  # head hash of the log that this one was recovered from


@record
class Review:
    """A coder's verdict on one event. Readers use the coder's latest one; the disk keeps all."""

    event_id: str
    coder: str
    verdict: Verdict
    polarity: Polarity | None = None
    attributes: tuple[Attribute, ...] = ()
    severity: Severity | None = None
    note: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError without a coder, or if a relabelled event has no attribute."""
        if not self.coder:
            raise ValueError("a verdict needs a coder: give a pseudonym")
        if self.verdict is Verdict.RELABEL and not self.attributes:
            raise ValueError("a relabelled event needs at least one attribute: give one, or another verdict")


@record
class Label:
    """One interval with one attribute, from a coder or the monitor. An interval of no length is an instant."""

    start_ns: int
    end_ns: int
    polarity: Polarity
    attribute: Attribute
    coder: str = MONITOR
    code: str = ""  # the monitor's cue, or a code of study.yaml
    severity: Severity | None = None
    probability: float | None = None
    event_id: str = ""
    comment: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError if it ends before it begins."""
        if self.end_ns < self.start_ns:
            raise ValueError(
                f"a label ends at {self.end_ns} ns, before it begins at {self.start_ns} ns: correct one of the times"
            )


@record
class Coding:
    """A coder's statement that they coded the whole session. `labels` is the number of labels.

    Readers use the coder's latest statement; the disk keeps all.
    """

    coder: str
    labels: int
    replaces: bool = False  # a revision: the labels follow, and readers leave out this coder's earlier ones
    retracts: bool = False  # a revision that takes the coding back: the coder has not coded the session

    def __post_init__(self) -> None:
        """Raises ValueError without a coder, or if a retraction has labels or does not replace any."""
        if not self.coder:
            raise ValueError("a coding needs a coder: give a pseudonym")
        if self.retracts and (self.labels or not self.replaces):
            raise ValueError("a retraction replaces all labels of its coder with none: give labels 0 and replaces")


class Consent(StrEnum):
    """A consent that a participant gives and may withdraw."""

    WORDS = "words"
    CODERS = "coders"
    EVERYTHING = "everything"


@record
class Withdrawal:
    """The consents that a participant withdrew. It is logged after the erasure."""

    participant: str
    consents: tuple[Consent, ...]


@record
class Tombstone:
    """Erased entries, their participant and the reason. The hashes remain, so the chain stays valid."""

    participant: str
    seqs: tuple[int, ...]
    reason: str


@record
class Recovered:
    """The losses of a log: a partial entry of a writer that crashed, or entries that a recovery or a live log lost."""

    torn_bytes: int
    lost: tuple[str, ...] = ()


@record
class Closed:
    """The recording ended normally. Reviews may follow."""

    entries: int


class Kind(StrEnum):
    """The type of a log's entry."""

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
    WITHDRAWAL = "withdrawal"


# Records of pseudonyms alone, and those that the chain needs. An erasure leaves them.
FRAME_TYPES = (SessionInfo, Tombstone, Recovered, Closed, BagRef, Withdrawal)

# The kinds of entries that may follow the end of a recording.
KINDS_AFTER_END = {
    Kind.REVIEW, Kind.LABEL, Kind.CODING, Kind.TOMBSTONE, Kind.RECOVERED, Kind.BAG, Kind.WITHDRAWAL,
}  # fmt: skip

# The record types, in the order of the kinds.
_TYPES: tuple[type, ...] = (
    SessionInfo, SocialFlag, Decision, Utterance, RobotSpeech, Presence, Review, Label, Coding, Tombstone, Recovered,
    Closed, BagRef, Withdrawal,
)  # fmt: skip
RECORDS = dict(zip(Kind, _TYPES, strict=True))
KINDS = {cls: kind for kind, cls in RECORDS.items()}


@record
class Entry:
    """One line of a log. `record` is None where it was erased."""

    seq: int
    kind: Kind
    wall_ns: int
    ros_ns: int
    record: Any
    file: str = ""
    line: int = 0


def apply_withdrawals(
    participants: Iterable[Participant], withdrawals: Iterable[Withdrawal]
) -> tuple[Participant, ...]:
    """Return the participants without their withdrawn consents."""
    withdrawn = {(withdrawal.participant, consent) for withdrawal in withdrawals for consent in withdrawal.consents}

    def is_in_force(pseudonym: str, consent: Consent) -> bool:
        return not withdrawn & {(pseudonym, consent), (pseudonym, Consent.EVERYTHING)}

    return limit_consents(participants, is_in_force)


def limit_consents(
    participants: Iterable[Participant], is_allowed: Callable[[str, Consent], bool]
) -> tuple[Participant, ...]:
    """Return the participants with the consents that are allowed alone."""
    return tuple(replace(p, transcript=p.transcript and is_allowed(p.pseudonym, Consent.WORDS)) for p in participants)


def collect_person_ids(record: Any) -> set[str]:
    """Collect the person ids in a record."""
    match record:
        case Utterance():
            ids = {record.speaker_id} if record.speaker is not Speaker.ROBOT else set()
        case SocialFlag():
            ids = {record.person_id}
        case Presence():
            ids = {person.person_id for person in record.persons}
        case _:
            ids = set()
    return ids - {""}


@record
class LinkedMedia:
    """A file or a URL. The session starts `offset_s` into it; a negative offset means that the camera started later."""

    path: str
    offset_s: float = 0.0


def parse_media(text: str) -> LinkedMedia:
    """Parse FILE or FILE=SECONDS, as in --media cam2.mp4=3.2."""
    path, _, offset = text.rpartition("=")
    if path and _NUMBER.fullmatch(offset) and not Path(text).exists():
        return LinkedMedia(path=path, offset_s=float(offset))
    return LinkedMedia(path=text)


def make_relative_link(media: LinkedMedia, folder: Path) -> str:
    """Return the path of a file relative to a folder, or nothing for a URL."""
    if "://" in media.path:
        return ""
    return f"./{Path(os.path.relpath(Path(media.path).resolve(), folder.resolve())).as_posix()}"
