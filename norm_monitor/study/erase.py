"""Takes a participant's data out of a log, and leaves a tombstone; the chain still holds."""

from collections.abc import Iterable
from pathlib import Path

from norm_core.decision import Decision
from norm_core.flag import SocialFlag
from norm_core.presence import Presence
from norm_core.record import record
from norm_core.speech import RobotSpeech, Speaker, Utterance
from norm_core.time import Clock
from norm_monitor.study.log import LogWriteError, StudyLog
from norm_monitor.study.read import LogError, read_sound
from norm_monitor.study.schema import (
    BagRef,
    Closed,
    Entry,
    Label,
    Participant,
    Recovered,
    Review,
    SessionInfo,
    Tombstone,
)

# What says nothing of a person beyond a pseudonym, and what a chain needs to be understood.
_KEPT = (SessionInfo, Tombstone, Recovered, Closed, BagRef)


@record
class Erasure:
    """What was taken out; unattributed entries name nobody, and went too unless they were to be kept."""

    participant: str
    entries: int
    unattributed: int
    sole: bool
    others: tuple[str, ...]


def erase(
    folder: Path,
    participant: str,
    clock: Clock,
    reason: str = "the participant's wish",
    *,
    keep_unattributed: bool = False,
) -> Erasure:
    """Empties every entry about a participant. A session with them alone keeps nothing but its frame."""
    contents = read_sound(folder)
    if contents.schema != 2:  # the first with bodies that can go
        raise LogError(
            f"{folder}: has the schema {contents.schema}, whose entries cannot be erased: study migrate first"
        )
    participants = _participants(contents.entries)
    whose = next((p for p in participants if p.pseudonym == participant), None)
    if whose is None:
        known = ", ".join(p.pseudonym for p in participants) or "none"
        raise LogError(f"{folder}: has no participant {participant}; it has {known}")
    sole = len(participants) == 1
    theirs, nobodys = _concerned(contents.entries, whose, sole=sole)
    seqs = sorted(theirs | (set() if keep_unattributed else nobodys))
    _bury(folder, Tombstone(participant=participant, seqs=tuple(seqs), reason=reason), clock)
    return Erasure(
        participant=participant,
        entries=len(seqs) + contents.half_erased,
        unattributed=0 if keep_unattributed else len(nobodys),
        sole=sole,
        others=tuple(p.pseudonym for p in participants if p.pseudonym != participant),
    )


def expire(folder: Path, clock: Clock) -> int:
    """Empties a log whose retention time has passed; how many entries. None stated keeps it."""
    contents = read_sound(folder)
    info = next((e for e in contents.entries if isinstance(e.record, SessionInfo)), None)
    if info is None or info.record.retention_days <= 0:
        return 0
    if clock.now_ns() < info.wall_ns + info.record.retention_days * 86_400 * 10**9:
        return 0
    seqs = tuple(e.seq for e in contents.entries if e.record is not None and not isinstance(e.record, _KEPT))
    if seqs or contents.half_erased:
        reason = f"kept for the {info.record.retention_days} days that were agreed"
        _bury(folder, Tombstone(participant="", seqs=seqs, reason=reason), clock)
    return len(seqs) + contents.half_erased


def _bury(folder: Path, tombstone: Tombstone, clock: Clock) -> None:
    """Empties what a tombstone names; taking the log up has finished an erasure that broke off."""
    with StudyLog.resume(folder, clock) as log:
        if tombstone.seqs:
            try:
                log.bury(tombstone)
            except LogWriteError as error:
                if log.held:
                    raise LogError(f"{error}. Nothing is erased yet: run this again then") from error
                raise


def _participants(entries: Iterable[Entry]) -> tuple[Participant, ...]:
    return next((e.record.participants for e in entries if isinstance(e.record, SessionInfo)), ())


def _concerned(entries: Iterable[Entry], whose: Participant, *, sole: bool) -> tuple[set[int], set[int]]:
    """Entries about the participant, and those of which nobody can say whom they are about."""
    entries = [e for e in entries if e.record is not None and not isinstance(e.record, _KEPT)]
    if sole:
        return {e.seq for e in entries}, set()
    ids = {*whose.person_ids, whose.pseudonym}
    utterances = {
        e.record.utterance_id for e in entries if isinstance(e.record, Utterance) and e.record.speaker_id in ids
    }
    theirs: set[int] = set()
    nobodys: set[int] = set()
    events: set[str] = set()
    for entry in entries:
        match entry.record:
            case Utterance() as said if said.speaker_id in ids:
                theirs.add(entry.seq)
            case Utterance() as said if said.speaker is not Speaker.ROBOT and not said.speaker_id:
                nobodys.add(entry.seq)
            case SocialFlag() as flag if flag.person_id in ids or any(
                f.utterance_id in utterances for f in flag.evidence
            ):
                theirs.add(entry.seq)
                events.add(flag.event_id)
            case SocialFlag() as flag if not flag.person_id:
                nobodys.add(entry.seq)
            case Presence() | Decision() | RobotSpeech() | _:
                continue
    for entry in entries:  # what reviewers wrote of these events goes with them
        if isinstance(entry.record, Review | Label) and entry.record.event_id in events:
            theirs.add(entry.seq)
    return theirs, nobodys
