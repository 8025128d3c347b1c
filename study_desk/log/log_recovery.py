"""Copy the valid part of a damaged log to a new one that names the old head and the losses."""

from dataclasses import replace
from pathlib import Path

from norm_core.records.json_codec import RecordError
from norm_core.records.record import record
from norm_core.runtime.time import ReplayClock
from study_desk.log.reader import ChainError, LogError, check_line, entry_of, lines, parse, read, segments
from study_desk.log.schema import Entry, Kind, Recovered, SessionInfo, Tombstone
from study_desk.log.writer import StudyLog

UNNAMED = "unnamed"


@record
class LogRecoveryReport:
    """The number of entries in the new log, and what of the old one is missing."""

    entries: int
    lost: tuple[str, ...]


def recover_log(old: Path, folder: Path) -> LogRecoveryReport:
    """Write every line that matches its own hash to a new log, in order of their numbers."""
    sound, lost = _sound(old)
    if not sound:
        raise LogError(f"{old}: holds no intact line, so nothing can be recovered; use a copy")
    contents = read(old)
    first = sound[min(sound)]
    entries = [entry for _, entry in sorted(sound.items()) if entry.kind is not Kind.CLOSED]
    info = next((entry.record for entry in entries if isinstance(entry.record, SessionInfo)), None)
    if info is None:
        lost.append("the entry that names the session and its participants")
    info = replace(info or SessionInfo(study=UNNAMED, session=old.resolve().name), migrated_from=contents.head)
    clock = ReplayClock(first.wall_ns)
    with StudyLog.begin(folder, info, clock) as log:
        for entry in entries:
            clock.advance_to(max(entry.wall_ns, clock.now_ns()))
            if isinstance(entry.record, Tombstone):
                log.append(replace(entry.record, seqs=()), entry.ros_ns)  # it must not name the new log's entries
            elif entry.record is not None and not isinstance(entry.record, SessionInfo):
                log.append(entry.record, entry.ros_ns)
        log.append(Recovered(torn_bytes=contents.torn_bytes, lost=tuple(lost)), 0)
        log.close(sealed=contents.sealed)
    return LogRecoveryReport(entries=log.entries, lost=tuple(lost))


def _sound(old: Path) -> tuple[dict[int, Entry], list[str]]:
    """Read the entries that are valid on their own, and list the missing ones. Both omit erased entries."""
    sound: dict[int, Entry] = {}
    links: dict[int, tuple[str, str]] = {}  # by number: the previous line's hash, and the own one
    lost: list[str] = []
    for file, number, text in lines(segments(old)):
        try:
            line = parse(text)
            check_line(line, line.get("seq", -1), line.get("prev", ""))
            entry = entry_of(line, file, number)
        except (ChainError, RecordError, ValueError, TypeError) as error:
            lost.append(f"{file}:{number} {error}")
            continue
        if entry.seq in sound:
            lost.append(f"{file}:{number} has the number {entry.seq}, which an earlier line has")
            continue
        sound[entry.seq], links[entry.seq] = entry, (line["prev"], line["hash"])
    missing = sorted(set(range(max(sound, default=-1))) - sound.keys())
    if more := max(0, len(missing) - len(lost)):
        lost.append(f"{more} more entries; the numbers that are not there begin with {missing[0]}")
    buried = {seq for e in sound.values() if isinstance(e.record, Tombstone) for seq in e.record.seqs}
    for seq, entry in sound.items():
        where = f"{entry.file}:{entry.line}"
        if entry.record is None and seq not in buried:
            lost.append(f"{where} its body is gone, and no tombstone says why")
        if seq - 1 in sound and links[seq][0] != links[seq - 1][1]:
            lost.append(f"{where} does not follow the line before it: both are kept, and one is not the original")
    return {seq: replace(e, record=None) if seq in buried else e for seq, e in sound.items()}, lost
