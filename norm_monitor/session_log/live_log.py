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
from norm_monitor.session_log.recording import LOGGED_TYPES, make_bag_ref, read_bag_records
from norm_monitor.session_log.redact import Redactor
from norm_monitor.session_log.schema import BagRef, Recovered, SessionInfo, collect_person_ids
from norm_monitor.session_log.writer import LogWriteError, StudyLog

# The number of records that may wait for the disk.
MAX_QUEUED = 10_000
# The time between two attempts to write or to open a log.
RETRY_S = 2.0
# The time between two checks that the log of a quiet session is still there: a missing one shows within two seconds.
CHECK_S = 0.5
# The longest wait for the last records at the end of a session.
END_S = 5.0
# The longest time between two logged presences.
PRESENCE_EVERY_NS = NS_PER_S


class RecordFilter:
    """Select the records to log: final words, and presence when it changes or once a second."""

    def __init__(self) -> None:
        self._last_people: tuple[Any, ...] = ()
        self._last_ns = -PRESENCE_EVERY_NS

    def accepts(self, record: Any) -> bool:
        """Whether to log this record. A presence is compared with the last one logged."""
        match record:
            case Utterance():
                return record.final
            case Presence():
                away = [face.looking_away for face in record.faces]
                people = (record.state, away, [(p.person_id, p.gaze, p.engagement) for p in record.persons])
                is_due = people != self._last_people or abs(record.stamp_ns - self._last_ns) >= PRESENCE_EVERY_NS
                if is_due:
                    self._last_people = people
                    self._last_ns = record.stamp_ns
                return is_due
            case _:
                return True


class LiveLog:
    """A study log that a separate thread writes. It reports disk problems in the health log, and retries."""

    def __init__(self, open_log: Callable[[], StudyLog], health_log: HealthLog, *, retry_s: float = RETRY_S) -> None:
        """Start the thread. It calls `open_log`, which begins or resumes the log, until that succeeds."""
        self._open_once = open_log
        self._health_log = health_log
        self._retry_s = retry_s
        self._queue = health_log.queue("study_log", MAX_QUEUED, OverflowPolicy.REFUSE)
        self._filter = RecordFilter()
        self._loss_entries: deque[tuple[Any, int]] = deque()  # entries about losses, to be written first
        self._ending = Event()
        self._changed = Condition()
        self._queued_count = 0
        self._written_count = 0
        self._refused_count = 0
        self._is_failing = False
        self._thread = Thread(target=self._write, name="study_log", daemon=True)
        self._thread.start()

    def put(self, record: Any, ros_ns: int) -> bool:
        """Queue a record without waiting for the disk. Returns False if the queue is full."""
        if not self._filter.accepts(record):
            return True
        with self._changed:
            is_queued = self._queue.put((record, ros_ns))
            self._queued_count += is_queued
            self._refused_count += not is_queued
        return is_queued

    def flush(self, timeout_s: float) -> bool:
        """Wait until every queued record is on disk. Returns False at once while the disk fails."""
        with self._changed:
            count = self._queued_count
            self._changed.wait_for(lambda: self._is_failing or self._written_count >= count, timeout_s)
            return self._written_count >= count

    def close(self) -> None:
        """Seal the log, because the session ended normally."""
        self._queue.close()
        self._ending.set()
        self._thread.join(END_S)

    def _write(self) -> None:
        """Write entries until the queue is closed and empty, or the session ends while the disk fails."""
        log = self._open_log()
        entry: tuple[Any, int] | None = None
        while log and (entry or self._loss_entries or not self._queue.is_drained()):
            if not log.is_in_place():
                log = self._reopen(log)
            elif entry is None:
                self._report_refused(log)
                entry = self._loss_entries.popleft() if self._loss_entries else self._queue.get(CHECK_S)
            elif self._try(partial(log.append, *entry)):
                entry = None
                with self._changed:
                    self._written_count += 1
                    self._changed.notify_all()
            elif self._ending.wait(self._retry_s):
                break
        if log:
            self._try(partial(log.close, sealed=True))
        if lost_count := self._queued_count - self._written_count:
            self._health_log.count("study_log_lost", lost_count)
            self._report_failure(
                f"{count_of(lost_count, 'entry', 'entries')} not written before the end; make room before the next "
                "session"
            )

    def _reopen(self, log: StudyLog) -> StudyLog | None:
        """Open the log anew after its folder or file was removed, and report the loss. None if the session ends."""
        self._report_failure(
            f"{log.folder}: was removed or replaced while it was written; it is begun anew once that is possible"
        )
        log.abandon()
        new = self._open_log()
        if new and (missing_count := log.entries - new.entries) > 0:
            self._report_loss(new, missing_count, "written before the log's folder or file was removed or replaced")
        return new

    def _report_refused(self, log: StudyLog) -> None:
        """Report the records that found the queue full since the last call."""
        with self._changed:
            refused_count = self._refused_count
            self._refused_count = 0
        if refused_count:
            self._report_loss(log, refused_count, f"refused, as {MAX_QUEUED} already waited for the disk")

    def _report_loss(self, log: StudyLog, count: int, how: str) -> None:
        """State in the log, and in the status until the session ends, that entries are missing."""
        what = f"{count_of(count, 'record')} {how}"
        self._health_log.count("study_log_lost", count)
        self._health_log.raise_issue("study_log_gap", Health.DEGRADED, f"study log: {log.folder} lacks {what}")
        with self._changed:
            self._loss_entries.append((Recovered(torn_bytes=0, lost=(what,)), 0))
            self._queued_count += 1

    def _open_log(self) -> StudyLog | None:
        """Open the log, and retry until it succeeds. None if the session ends first."""
        while True:
            try:
                log = self._open_once()
            except (LogError, OSError) as error:
                self._report_failure(f"{error}; the monitor goes on, and tries again")
            else:
                self._clear_failure()
                return log
            if self._ending.wait(self._retry_s):
                return None

    def _try(self, write: Callable[[], None]) -> bool:
        """Run a write. Return False if the disk refused it; a record that cannot be written is counted and dropped."""
        try:
            write()
        except OSError as error:
            self._report_failure(f"{error}; the monitor goes on")
            return False
        except LogError as error:
            self._health_log.count("study_log_refused")
            self._health_log.raise_issue(
                "study_log_entry", Health.DEGRADED, f"study log: a record was refused: {error}"
            )
        else:
            self._clear_failure()
        return True

    def _report_failure(self, why: str) -> None:
        """State a problem of the disk, and release whoever waits in flush."""
        self._health_log.raise_issue("study_log", Health.DEGRADED, f"study log: {why}")
        with self._changed:
            self._is_failing = True
            self._changed.notify_all()

    def _clear_failure(self) -> None:
        self._health_log.clear_issue("study_log")
        with self._changed:
            self._is_failing = False


# Reads a bag's records with the times at which they became known; None stands for an unreadable message.
RecordsOf = Callable[[BagReader], Iterator[tuple[int, Any]]]


def log_bag(  # noqa: PLR0917
    bag: Path,
    folder: Path,
    info: SessionInfo,
    clock: Clock,
    redactor: Redactor,
    records_of: RecordsOf | None = None,
) -> tuple[int, int]:
    """Write a bag's speech, presence, flags and decisions to a sealed log, without frames and sound.

    `records_of` gives the records; default: the recorded ones. Returns the counts of entries and unreadable messages.

    Raises LogError if a participant has a person id that the bag lacks, or if the disk is full.
    """
    record_filter = RecordFilter()
    with BagReader(bag) as reader:
        start_ns, end_ns = reader.bounds_ns or (0, 0)
        if records_of:  # the monitor takes long, so an unknown person id is found first
            _check_persons(_collect_persons(reader), info, bag)
        records = [
            (known_ns, record)
            for known_ns, record in (records_of or read_bag_records)(reader)
            if record is None or (isinstance(record, LOGGED_TYPES) and record_filter.accepts(record))
        ]
        _check_persons({person for _, record in records for person in collect_person_ids(record)}, info, bag)
        info = replace(info, bag=make_bag_ref(bag, start_ns), start_ns=start_ns, end_ns=end_ns)
        try:
            with StudyLog.begin(folder, info, clock, redactor=redactor) as log:
                for known_ns, record in records:
                    if record is not None:
                        log.append(record, known_ns)
                log.close(sealed=True)
        except LogWriteError as error:
            raise LogError(f"{error}, remove {folder} and log the bag again") from error
        return log.entries, sum(record is None for _, record in records)


def _collect_persons(bag: BagReader) -> set[str]:
    """Collect the person ids in a bag's records and lists; the monitor makes none of its own.

    An unreadable message is skipped, because the monitor reports it.
    """
    types_with_ids = (*map(message_type, (Utterance, SocialFlag, Presence)), "/IdsList")
    topics = [topic.topic for topic in bag.topics if topic.type_name.endswith(types_with_ids)]
    persons: set[str] = set()
    for message in bag.messages(topics) if topics else ():
        with suppress(BagError, MessageError):
            decoded = bag.decode(message)
            persons |= {*map(str, decoded.ids)} if hasattr(decoded, "ids") else collect_person_ids(decoded)
    return persons


def _check_persons(recorded: set[str], info: SessionInfo, bag: Path) -> None:
    """Raise LogError for person ids that the bag lacks: a typo would lose the link from words to a participant."""
    participant_ids = {person for participant in info.participants for person in participant.person_ids}
    if missing := participant_ids - recorded:
        raise LogError(
            f"{bag}: nobody in it has the person id {', '.join(sorted(missing))}; "
            f"it has {', '.join(sorted(recorded)) or 'none'}: correct the id, or leave out one that is not in the bag"
        )


def name_bag(folder: Path, bag: Path, clock: Clock) -> BagRef:
    """Add the name of the session's bag to a log, which a live log could not know. Raises LogError for an empty bag."""
    with BagReader(bag) as reader:
        bounds = reader.bounds_ns
    if bounds is None:
        raise LogError(f"{bag}: holds no message, so no session was recorded in it; name another bag")
    reference = make_bag_ref(bag, bounds[0])
    with StudyLog.resume(folder, clock) as log:
        log.append(reference, bounds[1])
    return reference
