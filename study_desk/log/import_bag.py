"""Write the session of a bag into a new log."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from norm_core.bags.reader import BagError, BagReader
from norm_core.records.flag import SocialFlag
from norm_core.records.messages import MessageError, message_type
from norm_core.records.presence import Presence
from norm_core.records.speech import Utterance
from norm_core.runtime.time import Clock
from study_desk.log.live_log import RecordFilter
from study_desk.log.reader import LogError
from study_desk.log.recording import BAGGED, bag_records, bag_reference
from study_desk.log.schema import BagRef, SessionInfo, persons_in
from study_desk.log.writer import LogWriteError, StudyLog
from study_desk.privacy.redact import Redactor

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
    sieve = RecordFilter()
    with BagReader(bag) as reader:
        start_ns, end_ns = reader.bounds_ns or (0, 0)
        if records_of:  # watching takes long, so a typo is found first
            _check_persons(_possible_persons(reader), info, bag)
        records = [
            (known_ns, record)
            for known_ns, record in (records_of or bag_records)(reader)
            if record is None or (isinstance(record, BAGGED) and sieve.keeps(record))
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
            f"it has {', '.join(sorted(recorded)) or 'none'}: mend the id, or leave out one that never came up"
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
