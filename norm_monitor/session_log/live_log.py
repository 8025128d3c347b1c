"""Log a session while it runs, without delaying the monitor, or from its bag."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Condition, Event, Thread
from typing import Any

from norm_core.bags.reader import BagError, BagReader
from norm_core.health.health_log import HealthLog
from norm_core.records.flag import SocialFlag
from norm_core.records.messages import MessageError, message_type
from norm_core.records.presence import Presence
from norm_core.records.speech import Utterance
from norm_core.records.status import Health
from norm_core.runtime.time import NS_PER_S, Clock
from norm_core.runtime.wording import count_of
from norm_core.streams.bounded_queue import OverflowPolicy
from norm_monitor.session_log.reader import LogError
from norm_monitor.session_log.recording import BAGGED, bag_records, bag_reference
from norm_monitor.session_log.redact import Redactor
from norm_monitor.session_log.schema import BagRef, Recovered, SessionInfo, persons_in
from norm_monitor.session_log.writer import LogWriteError, StudyLog

QUEUED = 10_000
# Retry interval after a failed write, how often a quiet log is looked for, and the longest wait for the last entries,
# in seconds. A status comes every second, so a log that is gone shows within two.
RETRY_S, CHECK_S, END_S = 2.0, 0.5, 5.0
PRESENCE_EVERY_NS = NS_PER_S


class RecordFilter:
    """Select the records to log: final words, and presence when it changes or once a second."""

    def __init__(self) -> None:
        self._last_seen: tuple[Any, ...] = ()
        self._last_ns = -PRESENCE_EVERY_NS

    def keeps(self, record: Any) -> bool:
        """Whether to log this record. A presence is compared with the last one logged."""
        match record:
            case Utterance():
                return record.final
            case Presence():
                away = [face.looking_away for face in record.faces]
                seen = (record.state, away, [(p.person_id, p.gaze, p.engagement) for p in record.persons])
                news = seen != self._last_seen or abs(record.stamp_ns - self._last_ns) >= PRESENCE_EVERY_NS
                if news:
                    self._last_seen, self._last_ns = seen, record.stamp_ns
                return news
            case _:
                return True


class LiveLog:
    """Write records from a separate thread. Reports disk problems in the health log, and retries."""

    def __init__(self, open_log: Callable[[], StudyLog], health_log: HealthLog, *, retry_s: float = RETRY_S) -> None:
        """`open_log` begins or resumes the log. It is called until it succeeds."""
        self._open, self._health_log, self._retry_s = open_log, health_log, retry_s
        self._queue = health_log.queue("study_log", QUEUED, OverflowPolicy.REFUSE)
        self._filter = RecordFilter()
        self._losses: deque[tuple[Any, int]] = deque()  # what the log is still to say that it lacks
        self._ending, self._changed = Event(), Condition()
        self._queued = self._written = self._refused = 0
        self._is_failing = False
        self._thread = Thread(target=self._write, name="study_log", daemon=True)
        self._thread.start()

    def put(self, record: Any, ros_ns: int) -> bool:
        """Queue a record without waiting for the disk. Returns False if the queue is full."""
        if not self._filter.keeps(record):
            return True
        with self._changed:
            taken = self._queue.put((record, ros_ns))
            self._queued += taken
            self._refused += not taken
        return taken

    def flush(self, timeout_s: float) -> bool:
        """Wait until every queued record is on disk. Returns False at once while the disk fails."""
        with self._changed:
            queued = self._queued
            self._changed.wait_for(lambda: self._is_failing or self._written >= queued, timeout_s)
            return self._written >= queued

    def close(self) -> None:
        """Seal the log, because the session ended normally."""
        self._queue.close()
        self._ending.set()
        self._thread.join(END_S)

    def _write(self) -> None:
        log, entry = self._open_log(), None
        while log and (entry or self._losses or not self._queue.is_drained()):
            if not log.is_in_place():
                log = self._reopen(log)
                continue
            if entry is None:
                self._note_refused(log)
                entry = self._losses.popleft() if self._losses else self._queue.get(CHECK_S)
                continue  # to look for the log again
            self._try(log.flush if log.pending_count else partial(log.append, *entry))
            if log.pending_count:
                if self._ending.wait(self._retry_s):
                    break
                continue
            entry = None
            with self._changed:
                self._written += 1
                self._changed.notify_all()
        if log:
            self._try(partial(log.close, sealed=True))
        if lost := self._queued - self._written:
            self._health_log.count("study_log_lost", lost)
            self._report_failure(
                f"{count_of(lost, 'entry', 'entries')} not written before the end; free some room next time"
            )

    def _reopen(self, log: StudyLog) -> StudyLog | None:
        """Open the log anew after its folder or file was removed, and note the loss. None if the session ends first.

        The caller still holds the entry that waited in the old log.
        """
        self._report_failure(
            f"{log.folder}: was removed or replaced while it was written; it is begun anew once that is possible"
        )
        log.abandon()
        new = self._open_log()
        if new and (missing := log.entries - new.entries) > 0:
            self._note_loss(new, missing, "written before the log's folder or file was removed or replaced")
        return new

    def _note_refused(self, log: StudyLog) -> None:
        with self._changed:
            refused, self._refused = self._refused, 0
        if refused:
            self._note_loss(log, refused, f"refused, as {QUEUED} already waited for the disk")

    def _note_loss(self, log: StudyLog, count: int, how: str) -> None:
        """Record in the log and in the status, until the session ends, that entries are missing."""
        what = f"{count_of(count, 'record')} {how}"
        self._health_log.count("study_log_lost", count)
        self._health_log.raise_issue("study_log_gap", Health.DEGRADED, f"study log: {log.folder} lacks {what}")
        with self._changed:
            self._losses.append((Recovered(torn_bytes=0, lost=(what,)), 0))
            self._queued += 1

    def _open_log(self) -> StudyLog | None:
        while True:
            try:
                log = self._open()
            except (LogError, OSError) as error:
                self._report_failure(f"{error}; the monitor goes on, and tries again")
            else:
                self._clear_failure()
                return log
            if self._ending.wait(self._retry_s):
                return None

    def _try(self, step: Callable[[], None]) -> None:
        """Run a write. The log keeps an entry that the disk refuses; an unwritable entry is counted."""
        try:
            step()
        except OSError as error:
            self._report_failure(f"{error}; the monitor goes on")
        except LogError as error:
            self._health_log.count("study_log_refused")
            self._health_log.raise_issue(
                "study_log_entry", Health.DEGRADED, f"study log: a record was refused: {error}"
            )
        else:
            self._clear_failure()

    def _report_failure(self, why: str) -> None:
        self._health_log.raise_issue("study_log", Health.DEGRADED, f"study log: {why}")
        with self._changed:
            self._is_failing = True
            self._changed.notify_all()

    def _clear_failure(self) -> None:
        self._health_log.clear_issue("study_log")
        with self._changed:
            self._is_failing = False


# A bag's records with the times they became known. None stands for an unreadable message.
TimedRecords = Iterator[tuple[int, Any]]
RecordsOf = Callable[[BagReader], TimedRecords]


def log_bag(  # noqa: PLR0917
    bag: Path,
    folder: Path,
    info: SessionInfo,
    clock: Clock,
    redactor: Redactor,
    records_of: RecordsOf | None = None,
) -> tuple[int, int]:
    """Write a bag's speech, presence, flags and decisions to a sealed log.

    `records_of` gives the records; default: the recorded ones. Leaves out frames and sound.
    Returns the counts of entries and of unreadable messages.
    """
    record_filter = RecordFilter()
    with BagReader(bag) as reader:
        start_ns, end_ns = reader.bounds_ns or (0, 0)
        if records_of:  # watching takes long, so a typo is found first
            _check_persons(_possible_persons(reader), info, bag)
        records = [
            (known_ns, record)
            for known_ns, record in (records_of or bag_records)(reader)
            if record is None or (isinstance(record, BAGGED) and record_filter.keeps(record))
        ]
        _check_persons({person for _, record in records for person in persons_in(record)}, info, bag)
        info = replace(info, bag=bag_reference(bag, start_ns), start_ns=start_ns, end_ns=end_ns)
        try:
            with StudyLog.begin(folder, info, clock, redactor=redactor) as log:
                for known_ns, record in records:
                    if record is not None:
                        log.append(record, known_ns)
                log.close(sealed=True)
        except LogWriteError as error:
            raise LogError(f"{error}, remove {folder} and log the bag again") from error
        return log.entries, sum(record is None for _, record in records)


def _possible_persons(bag: BagReader) -> set[str]:
    """Collect the ids that a bag gives people in records and in lists; the monitor makes none of its own.

    A message that cannot be read is passed over, because the monitor says so itself.
    """
    wanted = tuple(map(message_type, (Utterance, SocialFlag, Presence)))
    listing = [topic.topic for topic in bag.topics if topic.type_name.endswith((*wanted, "/IdsList"))]
    persons: set[str] = set()
    for message in bag.messages(listing) if listing else ():
        with suppress(BagError, MessageError):
            decoded = bag.decode(message)
            persons |= {*map(str, decoded.ids)} if hasattr(decoded, "ids") else persons_in(decoded)
    return persons


def _check_persons(recorded: set[str], info: SessionInfo, bag: Path) -> None:
    """Refuse person ids that the bag lacks: a typo would lose the link from words to a participant."""
    named = {person for participant in info.participants for person in participant.person_ids}
    if missing := named - recorded:
        raise LogError(
            f"{bag}: nobody in it has the person id {', '.join(sorted(missing))}; "
            f"it has {', '.join(sorted(recorded)) or 'none'}: correct the id, or leave out one that never came up"
        )


def name_bag(folder: Path, bag: Path, clock: Clock) -> BagRef:
    """Add the name of the session's bag to a log, which a live log could not know."""
    with BagReader(bag) as reader:
        bounds = reader.bounds_ns
    if bounds is None:
        raise LogError(f"{bag}: holds no message, so no session was recorded in it; name another bag")
    reference = bag_reference(bag, bounds[0])
    with StudyLog.resume(folder, clock) as log:
        log.append(reference, bounds[1])
    return reference
