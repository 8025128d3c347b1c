"""Erase a participant's data from a log, and leave a tombstone. The chain stays valid."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field, replace
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any

from norm_core.records.decision import Decision
from norm_core.records.flag import SocialFlag
from norm_core.records.json_codec import to_plain
from norm_core.records.presence import Presence
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Speaker, Utterance
from norm_core.runtime.time import NS_PER_S, Clock
from norm_monitor.session_log.reader import LogError, read, read_sound
from norm_monitor.session_log.recording import without_superseded
from norm_monitor.session_log.redact import (
    WITHHELD,
    NamesToRemove,
    RedactionPolicy,
    Redactor,
    quotes_in,
    replace_texts,
    without_words,
)
from norm_monitor.session_log.schema import (
    FRAME,
    Closed,
    Entry,
    Label,
    LabelRemoval,
    Participant,
    Review,
    SessionInfo,
    Tombstone,
    persons_in,
)
from norm_monitor.session_log.text_search import (
    WordRuns,
    name_parts,
    name_pattern,
    part_pattern,
    plain_words,
    telling_sentences,
)
from norm_monitor.session_log.writer import LogWriteError, StudyLog

# Shortest person id to search for in text. Shorter ones, such as "7", occur by chance.
_TELLING_ID = 4
DAY_NS = 86_400 * NS_PER_S
# No bag is older than ROS; simulated clocks begin at zero.
_FIRST_DAY_NS = 13_000 * DAY_NS


@record
class PlannedErasure:
    """What goes from a log: entries by number, with the copy that replaces each, and the speech of people in them."""

    participant: str
    changes: dict[int, Any] = field(default_factory=dict)  # None: no copy
    speech: tuple[Utterance, ...] = ()


@record
class Retention:
    """How long a log is kept, and when that ends."""

    days: int
    end_ns: int


def plan_erasure(
    folder: Path,
    participant: str,
    *,
    keep_unattributed: bool = False,
    words_only: bool = False,
    participants: tuple[Participant, ...] = (),
    names: Collection[str] = (),
) -> PlannedErasure:
    """Find every entry about a participant. If they took part alone, only the session's frame remains.

    Entries that name no participant go too, unless `keep_unattributed`. With `words_only`, copies without their words
    replace the entries. Speech without a person id is theirs if they took part alone, and may be theirs otherwise.
    `participants` is for a log that names none; `names` are their real ones.
    """
    contents = read_sound(folder)
    stated = (e.record.participants for e in contents.entries if isinstance(e.record, SessionInfo))
    participants = next(stated, ()) or participants
    whose = next((p for p in participants if p.pseudonym == participant), None)
    if whose is None:
        pseudonyms = ", ".join(p.pseudonym for p in participants) or "none"
        raise LogError(f"{folder}: has no participant {participant}; it has {pseudonyms}: name one of these")
    sole = len(participants) == 1
    entries = _erasable(contents.entries)
    others = _names(*(p for p in participants if p != whose))
    words = _Words(entries, whose, others, names, with_unattributed=sole or not keep_unattributed)
    if words_only:
        theirs, nobodys = _speaking(entries, words, sole=sole)
    else:
        own = _Words(entries, whose, others, names, with_unattributed=False)
        theirs, nobodys = _concerned(entries, own, words, sole=sole)
    seqs = theirs | (set() if keep_unattributed else nobodys)
    chosen = [e for e in entries if e.seq in seqs]
    utterances = [e.record for e in chosen if isinstance(e.record, Utterance)]
    return PlannedErasure(
        participant=participant,
        changes={e.seq: words.withheld(e.record) if words_only else None for e in chosen},
        speech=tuple(u for u in utterances if u.speaker is not Speaker.ROBOT and u.text != WITHHELD),
    )


def runs_to_withhold(planned: Mapping[Path, PlannedErasure], logs: Iterable[Path]) -> WordRuns:
    """Collect the runs of words that go from these logs, but for those that somebody else had said before.

    So a robot keeps its own phrases. Said before is what an earlier session has, or what stands before in the log with
    no later stamp: clocks of a robot and of its ears may differ.
    """
    records = {log: [e.record for e in read(log).entries] for log in logs}
    speech = {log: [r for r in of_log if isinstance(r, Utterance | RobotSpeech)] for log, of_log in records.items()}
    spans = {
        log: (min(map(_start_ns, records)), max(map(_start_ns, records))) for log, records in speech.items() if records
    }
    withheld = WordRuns()
    for log, plan in planned.items():
        going = {*plan.speech}
        began_ns = spans[log][0] if log in spans else 0
        before = WordRuns()
        for other in [
            log for log, (start_ns, end_ns) in spans.items() if _FIRST_DAY_NS <= start_ns <= end_ns < began_ns
        ]:
            theirs = planned[other].speech if other in planned else ()
            for spoken in speech[other]:
                if spoken not in theirs:
                    before.add(spoken.text)
        starts_ns = [_start_ns(spoken) if spoken in going else math.inf for spoken in speech[log]]
        next_ns = [*accumulate(reversed(starts_ns), min)][::-1]
        for spoken, going_ns in zip(speech[log], next_ns, strict=True):
            if spoken in going:
                withheld.add(spoken.text, before)
            elif _start_ns(spoken) <= going_ns:
                before.add(spoken.text)
    return withheld


def _start_ns(record: Utterance | RobotSpeech) -> int:
    return record.start_ns if isinstance(record, Utterance) else record.stamp_ns


def erase(
    folder: Path,
    planned: PlannedErasure,
    clock: Clock,
    reason: str = "the participant's wish",
    redactor: Redactor | None = None,
) -> int:
    """Carry out an erasure, and take out of all other entries what the redactor does. Returns the number of entries.

    Without a redactor, the words that go are taken out.
    """
    contents = read_sound(folder)
    redactor = redactor or words_redactor(runs_to_withhold({folder: planned}, [folder]))
    entries = _erasable(contents.entries)
    copies = {e.seq: planned.changes.get(e.seq, e.record) for e in entries}
    copies |= {seq: replace_texts(redactor.clean(r), redactor.text) for seq, r in copies.items() if r is not None}
    changes = {e.seq: copies[e.seq] for e in entries if copies[e.seq] != e.record}
    if changes or contents.half_erased:  # else another process may go on writing the log
        stone = Tombstone(participant=planned.participant, seqs=tuple(sorted(changes)), reason=reason)
        _bury(folder, stone, clock, _copies(contents.entries, changes))
    return len(changes) + contents.half_erased


def words_redactor(withheld: WordRuns, names: NamesToRemove | None = None) -> Redactor:
    """Make the redactor that takes these words and names out of a log, and learns no others."""
    return Redactor(RedactionPolicy(redact_introductions=False), names, withheld=withheld)


def _erasable(entries: Iterable[Entry]) -> list[Entry]:
    return [e for e in entries if e.record is not None and not isinstance(e.record, FRAME)]


def retention_of(entries: Iterable[Entry], study_days: int = 0) -> Retention | None:
    """Return how long a log is kept, by its own days or those of its study; None without a limit."""
    first = next((e for e in entries if isinstance(e.record, SessionInfo)), None)
    stated = [days for days in (first.record.retention_days if first else 0, study_days) if days]
    if first is None or not stated:
        return None
    return Retention(days=min(stated), end_ns=_recorded_ns(first) + min(stated) * DAY_NS)


def _recorded_ns(first: Entry) -> int:
    """Return when the session ended: a log may be written long after its bag was recorded.

    A simulated clock, or one that runs ahead, does not tell the day; then the log's first entry does.
    """
    end_ns = first.record.end_ns or 0
    return end_ns if _FIRST_DAY_NS <= end_ns <= first.wall_ns else first.wall_ns


def expire(folder: Path, clock: Clock, study_days: int = 0) -> int:
    """Erase a log after its retention time. Without a stated time, keeps it. Returns the number of entries."""
    contents = read_sound(folder)
    retention = retention_of(contents.entries, study_days)
    if retention is None or clock.now_ns() < retention.end_ns:
        return 0
    seqs = tuple(e.seq for e in contents.entries if e.record is not None and not isinstance(e.record, FRAME))
    if seqs or contents.half_erased:
        reason = f"kept for the {retention.days} days that were agreed"
        _bury(folder, Tombstone(participant="", seqs=seqs, reason=reason), clock)
    return len(seqs) + contents.half_erased


def _bury(folder: Path, tombstone: Tombstone, clock: Clock, copies: Iterable[Entry] = ()) -> None:
    """Erase what a tombstone names. Opening the log has completed any interrupted erasure.

    The copies come first, so that a crash loses none.
    """
    with StudyLog.resume(folder, clock) as log:
        if tombstone.seqs:
            try:
                for copy in copies:
                    log.append(copy.record, copy.ros_ns)
                log.replace_entries(tombstone)
            except LogWriteError as error:
                if log.pending_count:
                    raise LogError(f"{error}. Nothing is erased yet: run this again then") from error
                raise


def _names(*participants: Participant) -> set[str]:
    return {name for p in participants for name in (*p.person_ids, p.pseudonym)}


def _concerned(entries: list[Entry], own: "_Words", words: "_Words", *, sole: bool) -> tuple[set[int], set[int]]:
    """Find entries about the participant, and entries whose participant is unknown or that repeat such a one.

    `own` are the words with the participant's ids, `words` also those that may be theirs.
    """
    if sole:
        return {e.seq for e in entries}, set()
    theirs: set[int] = set()
    nobodys: set[int] = set()
    for entry in entries:
        persons = persons_in(entry.record)
        if persons & own.ids or own.occur_in(entry.record):
            theirs.add(entry.seq)
        elif (_may_be_anybodys(entry.record) and not persons & own.others) or words.occur_in(entry.record):
            nobodys.add(entry.seq)
    events = {e.record.event_id for e in entries if e.seq in theirs and isinstance(e.record, SocialFlag)}
    for entry in entries:  # every state of an event is erased, and the reviews of it
        if isinstance(entry.record, SocialFlag | Review | Label) and entry.record.event_id in events:
            theirs.add(entry.seq)
    versions = {_version_of(e.record) for e in entries if e.seq in theirs} - {None}
    theirs |= {e.seq for e in entries if _version_of(e.record) in versions}  # or an older version would stand again
    return theirs, nobodys - theirs


def _version_of(record: Any) -> tuple[str, ...] | None:
    """Return the label, flag or verdict of which this is a version: readers take the latest."""
    match record:
        case Label() | LabelRemoval() if record.label_id:
            return "label", record.coder, record.label_id
        case SocialFlag():
            return "flag", record.event_id
        case Review():
            return "verdict", record.event_id, record.coder
        case _:
            return None


def _speaking(entries: list[Entry], words: "_Words", *, sole: bool) -> tuple[set[int], set[int]]:
    theirs: set[int] = set()
    nobodys: set[int] = set()
    for entry in entries:
        record = entry.record
        if words.withheld(record) == record:
            continue
        if isinstance(record, Utterance) and record.speaker is not Speaker.ROBOT:
            if record.speaker_id in words.ids or sole:
                theirs.add(entry.seq)
            elif record.speaker_id not in words.others:
                nobodys.add(entry.seq)
        elif words.are_quoted_in(record):
            theirs.add(entry.seq)
    return theirs, nobodys


def _copies(entries: Iterable[Entry], changes: Mapping[int, Any]) -> tuple[Entry, ...]:
    """Copy entries as they are changed, unless an interrupted run has added the copy. A sealed log is sealed again.

    An older version is not copied, nor a label that was revised, because readers would take its copy for the latest.
    """
    entries = list(entries)
    there = [e.record for e in entries]
    standing = {id(record) for record in without_superseded(there)}
    latest = {_version_of(e.record): e.seq for e in entries}
    copies = [
        replace(e, record=changes[e.seq])
        for e in entries
        if changes.get(e.seq) is not None
        and id(e.record) in standing
        and (_version_of(e.record) is None or latest[_version_of(e.record)] == e.seq)
    ]
    sealed = [e for e in entries if isinstance(e.record, Closed)]
    return tuple(
        copy for copy in (*copies, *sealed[-1:]) if isinstance(copy.record, Closed) or copy.record not in there
    )


def _may_be_anybodys(record: Any) -> bool:
    match record:
        case Utterance():
            return record.speaker is not Speaker.ROBOT
        case SocialFlag():
            return True
        case Presence():
            return bool(record.persons)
        case _:
            return False


class _Words:
    """A participant's words and names, to find them in what others say and write."""

    def __init__(
        self,
        entries: Iterable[Entry],
        whose: Participant,
        others: set[str],
        names: Collection[str],
        *,
        with_unattributed: bool,
    ) -> None:
        """Take the words without a person id as theirs too, if `with_unattributed`."""
        self.ids, self.others = _names(whose), others
        utterances = [e.record for e in entries if isinstance(e.record, Utterance)]

        def is_mine(utterance: Utterance) -> bool:
            is_theirs = utterance.speaker_id in self.ids or (with_unattributed and utterance.speaker_id not in others)
            return utterance.speaker is not Speaker.ROBOT and is_theirs

        mine = [u for u in utterances if is_mine(u) and u.text != WITHHELD]
        rest = [u.text for u in utterances if not is_mine(u)]
        rest += [text for text, _ in groupby(e.record.text for e in entries if isinstance(e.record, RobotSpeech))]
        self._utterance_ids = {u.utterance_id for u in mine}
        self._words = "".join(plain_words(utterance.text) for utterance in mine)
        self._rest = "".join(map(plain_words, rest))
        self._sentences = {sentence for utterance in mine for sentence in telling_sentences(utterance.text)}
        self._runs = WordRuns()
        for utterance in mine:
            self._runs.add(utterance.text)
        ids = [whose.pseudonym, *(i for i in whose.person_ids if len(i) >= _TELLING_ID)]
        patterns = [*(rf"(?<!\w){re.escape(i)}(?!\w)" for i in ids), *(rf"(?i:{name_pattern(n)})" for n in names)]
        self._names = re.compile("|".join([*patterns, *map(part_pattern, name_parts(names))]))

    def withheld(self, record: Any) -> Any:
        """Withhold all that a record quotes or says in words, and the participant's words wherever else they stand."""
        return replace_texts(without_words(record), lambda text: self._runs.replaced_in(text, WITHHELD))

    def occur_in(self, record: Any) -> bool:
        """Whether a record names the participant or repeats their words. From speech, only the words are taken out."""
        text = "\n".join(_texts(to_plain(record)))
        if self._names.search(text):
            return True
        if isinstance(record, Utterance | RobotSpeech):
            return False
        return self._repeats(text) or self._evidence_is_mine(record) or any(map(self._are_mine_alone, _quotes(record)))

    def are_quoted_in(self, record: Any) -> bool:
        """Whether a record that nobody said quotes the participant, or may do: what it quotes is nobody else's."""
        if isinstance(record, Utterance | RobotSpeech):
            return False
        is_run_in = self._runs.occur_in(plain_words("\n".join(_texts(to_plain(record)))).split())
        return is_run_in or self._evidence_is_mine(record) or not all(map(self._are_others, _quotes(record)))

    def _repeats(self, text: str) -> bool:
        plain = plain_words(text)
        return any(sentence in plain for sentence in self._sentences)

    def _evidence_is_mine(self, record: Any) -> bool:
        return isinstance(record, SocialFlag) and any(f.utterance_id in self._utterance_ids for f in record.evidence)

    def _are_mine_alone(self, quote: str) -> bool:
        plain = plain_words(quote)
        return bool(plain.strip()) and plain in self._words and plain not in self._rest

    def _are_others(self, quote: str) -> bool:
        plain = plain_words(quote)
        return not plain.strip() or plain == plain_words(WITHHELD) or plain in self._rest


def _quotes(record: Any) -> list[str]:
    """List what a record quotes. A correction quotes what the robot had better said."""
    match record:
        case SocialFlag():
            return [*(fact.quote for fact in record.evidence), *quotes_in(record.rationale)]
        case Decision():
            return [*quotes_in(record.situation), *quotes_in(record.explanation)]
        case _:
            return []


def _texts(plain: Any) -> Iterator[str]:
    """Yield all text in the plain form of a record."""
    if isinstance(plain, str):
        yield plain
    elif isinstance(plain, list | dict):
        for part in plain.values() if isinstance(plain, dict) else plain:
            yield from _texts(part)
