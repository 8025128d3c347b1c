"""End the retention of a log: how long it is kept, and what happens then."""

from collections.abc import Iterable
from pathlib import Path

from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, Clock
from norm_monitor.session_log.reader import read_sound
from norm_monitor.session_log.schema import Entry, SessionInfo, Tombstone
from study_desk.study.erase import MIN_CLOCK_NS, list_erasable, replace_with_tombstone

DAY_NS = 86_400 * NS_PER_S


@record
class Retention:
    """How long a log is kept, and when that ends."""

    days: int
    end_ns: int


def find_retention(entries: Iterable[Entry], study_days: int = 0) -> Retention | None:
    """Return how long a log is kept: the shorter of its own days and its study's. None without a limit."""
    first = next((e for e in entries if isinstance(e.record, SessionInfo)), None)
    limits = [days for days in (first.record.retention_days if first else 0, study_days) if days]
    if first is None or not limits:
        return None
    return Retention(days=min(limits), end_ns=_find_session_end(first) + min(limits) * DAY_NS)


def _find_session_end(first: Entry) -> int:
    """Return when the session ended; a log may be written long after its bag was recorded.

    A clock that is simulated or runs ahead does not show the day. Then the log's first entry does.
    """
    end_ns = first.record.end_ns or 0
    return end_ns if MIN_CLOCK_NS <= end_ns <= first.wall_ns else first.wall_ns


def expire(folder: Path, clock: Clock, study_days: int = 0) -> int:
    """Erase a log after its retention time, if it has one. Return the number of entries."""
    contents = read_sound(folder)
    retention = find_retention(contents.entries, study_days)
    if retention is None or clock.now_ns() < retention.end_ns:
        return 0
    seqs = tuple(e.seq for e in list_erasable(contents.entries))
    if seqs or contents.half_erased:
        reason = f"kept for the {retention.days} days that were agreed"
        replace_with_tombstone(folder, Tombstone(participant="", seqs=seqs, reason=reason), clock)
    return len(seqs) + contents.half_erased
