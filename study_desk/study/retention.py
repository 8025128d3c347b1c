"""End the retention of a log: how long it is kept, and what happens then."""

from collections.abc import Iterable
from pathlib import Path

from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, Clock
from norm_monitor.session_log.reader import read_sound
from norm_monitor.session_log.schema import Entry, SessionInfo, Tombstone
from study_desk.study.erase import FIRST_DAY_NS, bury, erasable

DAY_NS = 86_400 * NS_PER_S


@record
class Retention:
    """How long a log is kept, and when that ends."""

    days: int
    end_ns: int


def retention_of(entries: Iterable[Entry], study_days: int = 0) -> Retention | None:
    """Return how long a log is kept, by its own days or those of its study; None without a limit."""
    first = next((e for e in entries if isinstance(e.record, SessionInfo)), None)
    limits = [days for days in (first.record.retention_days if first else 0, study_days) if days]
    if first is None or not limits:
        return None
    return Retention(days=min(limits), end_ns=_recorded_ns(first) + min(limits) * DAY_NS)


def _recorded_ns(first: Entry) -> int:
    """Return when the session ended; a log may be written long after its bag was recorded.

    A clock that is simulated or runs ahead does not show the day. Then the log's first entry does.
    """
    end_ns = first.record.end_ns or 0
    return end_ns if FIRST_DAY_NS <= end_ns <= first.wall_ns else first.wall_ns


def expire(folder: Path, clock: Clock, study_days: int = 0) -> int:
    """Erase a log after its retention time, if it has one. Return the number of entries."""
    contents = read_sound(folder)
    retention = retention_of(contents.entries, study_days)
    if retention is None or clock.now_ns() < retention.end_ns:
        return 0
    seqs = tuple(e.seq for e in erasable(contents.entries))
    if seqs or contents.half_erased:
        reason = f"kept for the {retention.days} days that were agreed"
        bury(folder, Tombstone(participant="", seqs=seqs, reason=reason), clock)
    return len(seqs) + contents.half_erased
