"""Erase a participant's data from a log, and leave a tombstone. The chain stays valid."""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
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
from norm_monitor.session_log.recording import drop_superseded_labels
from norm_monitor.session_log.redact import (
    WITHHELD,
    NamesToRemove,
    RedactionPolicy,
    Redactor,
    clean_texts,
    find_quotes,
    withhold_words,
)
from norm_monitor.session_log.schema import (
    FRAME_TYPES,
    Closed,
    Entry,
    Label,
    Participant,
    Review,
    SessionInfo,
    Tombstone,
    collect_person_ids,
)
from norm_monitor.session_log.text_search import (
    WordRuns,
    make_name_pattern,
    make_part_pattern,
    normalize_words,
    split_names,
)
from norm_monitor.session_log.writer import LogWriteError, StudyLog

# The shortest person id to search for in text. Shorter ones, such as "7", occur by chance.
_MIN_ID_CHARACTERS = 4
# The earliest stamp of a real clock. No bag is older than ROS; simulated clocks begin at zero.
MIN_CLOCK_NS = 13_000 * 86_400 * NS_PER_S


@record
class PlannedErasure:
    """The entries that go from a log by number, each with its copy, and the speech of people in them."""

    participant: str
    changes: dict[int, Any] = field(default_factory=dict)  # None: no copy
    speech: tuple[Utterance, ...] = ()


def plan_erasure(
    folder: Path,
    participant: str,
    *,
    words_only: bool = False,
    participants: tuple[Participant, ...] = (),
    names: Collection[str] = (),
) -> PlannedErasure:
    """Find every entry about a participant, or about nobody who is named.

    If they took part alone, only the frame remains. With `words_only`, copies without their words replace the entries.
    Speech without a person id may be theirs. `participants` is for a log that names none; `names` are real ones.

    Raises LogError if the session does not have the participant.
    """
    contents = read_sound(folder)
    recorded = (e.record.participants for e in contents.entries if isinstance(e.record, SessionInfo))
    participants = next(recorded, ()) or participants
    own = next((p for p in participants if p.pseudonym == participant), None)
    if own is None:
        pseudonyms = ", ".join(p.pseudonym for p in participants) or "none"
        raise LogError(f"{folder}: has no participant {participant}; it has {pseudonyms}: name one of these")
    is_alone = len(participants) == 1
    entries = list_erasable(contents.entries)
    traces = _Traces(entries, own, _collect_ids(p for p in participants if p != own), names)
    if words_only:
        chosen = [e for e in entries if traces.has_words(e.record, is_alone=is_alone)]
    elif is_alone:
        chosen = entries
    else:
        chosen = _add_versions(entries, {e.seq for e in entries if traces.is_about_participant(e.record)})
    utterances = [e.record for e in chosen if isinstance(e.record, Utterance)]
    return PlannedErasure(
        participant=participant,
        changes={e.seq: traces.withhold_words(e.record) if words_only else None for e in chosen},
        speech=tuple(u for u in utterances if u.speaker is not Speaker.ROBOT and u.text != WITHHELD),
    )


def _add_versions(entries: list[Entry], seqs: set[int]) -> list[Entry]:
    """Add every state of the chosen flags, and the reviews and labels of these."""
    events = {e.record.event_id for e in entries if e.seq in seqs and isinstance(e.record, SocialFlag)}
    seqs = seqs | {
        e.seq for e in entries if isinstance(e.record, SocialFlag | Review | Label) and e.record.event_id in events
    }
    versions = {_identify_version(e.record) for e in entries if e.seq in seqs} - {None}
    return [e for e in entries if e.seq in seqs or _identify_version(e.record) in versions]


def find_runs_to_withhold(planned: Mapping[Path, PlannedErasure], logs: Iterable[Path]) -> WordRuns:
    """Collect the runs of words that go from these logs, but for those that somebody else had said before.

    So a robot keeps its own phrases. Earlier sessions count as before. In a log, so does what stands before with no
    later stamp: the clocks of a robot and of its ears may differ.
    """
    speech = {
        log: [e.record for e in read(log).entries if isinstance(e.record, Utterance | RobotSpeech)] for log in logs
    }
    starts_ns = {log: [_get_start_ns(spoken) for spoken in speech[log]] for log in speech}
    withheld = WordRuns()
    for log, plan in planned.items():
        own_speech = frozenset(plan.speech)
        said_before = WordRuns()
        session_start_ns = min(starts_ns[log], default=0)
        for other, other_starts_ns in starts_ns.items():
            if other_starts_ns and MIN_CLOCK_NS <= min(other_starts_ns) <= max(other_starts_ns) < session_start_ns:
                erased = planned[other].speech if other in planned else ()
                for spoken in speech[other]:
                    if spoken not in erased:
                        said_before.add(spoken.text)
        own_starts_ns = [_get_start_ns(spoken) if spoken in own_speech else math.inf for spoken in speech[log]]
        # The first stamp of the participant's speech from each entry on.
        next_own_ns = [*accumulate(reversed(own_starts_ns), min)][::-1]
        for spoken, start_ns, own_ns in zip(speech[log], starts_ns[log], next_own_ns, strict=True):
            if spoken in own_speech:
                withheld.add(spoken.text, said_before)
            elif start_ns <= own_ns:
                said_before.add(spoken.text)
    return withheld


def _get_start_ns(spoken: Utterance | RobotSpeech) -> int:
    return spoken.start_ns if isinstance(spoken, Utterance) else spoken.stamp_ns


def erase(
    folder: Path,
    planned: PlannedErasure,
    clock: Clock,
    reason: str = "the participant's wish",
    redactor: Redactor | None = None,
) -> int:
    """Carry out an erasure, and redact all other entries. Return the number of changed entries.

    The default redactor takes out the words that go.
    """
    contents = read_sound(folder)
    redactor = redactor or make_words_redactor(find_runs_to_withhold({folder: planned}, [folder]))
    entries = list_erasable(contents.entries)
    copies = {e.seq: planned.changes.get(e.seq, e.record) for e in entries}
    copies |= {
        seq: clean_texts(redactor.clean(copy), redactor.clean_text) for seq, copy in copies.items() if copy is not None
    }
    changes = {e.seq: copies[e.seq] for e in entries if copies[e.seq] != e.record}
    if changes or contents.half_erased:  # else another process may go on writing the log
        tombstone = Tombstone(participant=planned.participant, seqs=tuple(sorted(changes)), reason=reason)
        replace_with_tombstone(folder, tombstone, clock, _copy_changed(contents.entries, changes))
    return len(changes) + contents.half_erased


def make_words_redactor(withheld: WordRuns, names: NamesToRemove | None = None) -> Redactor:
    """Make a redactor of these words and names, which learns no others."""
    return Redactor(RedactionPolicy(redact_introductions=False), names, withheld=withheld)


def list_erasable(entries: Iterable[Entry]) -> list[Entry]:
    """List the entries that an erasure may change."""
    return [e for e in entries if e.record is not None and not isinstance(e.record, FRAME_TYPES)]


def replace_with_tombstone(folder: Path, tombstone: Tombstone, clock: Clock, copies: Iterable[Entry] = ()) -> None:
    """Erase the entries that a tombstone names. Opening the log completes an interrupted erasure.

    The copies come first, so that a crash loses none.

    Raises LogError if the log cannot be written.
    """
    with StudyLog.resume(folder, clock) as log:
        if tombstone.seqs:
            try:
                for copy in copies:
                    log.append(copy.record, copy.ros_ns)
                log.append(tombstone, 0)
            except LogWriteError as error:
                raise LogError(f"{error}. Nothing is erased yet: run this again then") from error
            log.finish_erasures()


def _collect_ids(participants: Iterable[Participant]) -> set[str]:
    return {name for p in participants for name in (*p.person_ids, p.pseudonym)}


def _identify_version(record: Any) -> tuple[str, ...] | None:
    """Return the flag or verdict of which this is a version: readers take the latest."""
    match record:
        case SocialFlag():
            return "flag", record.event_id
        case Review():
            return "verdict", record.event_id, record.coder
        case _:
            return None


def _copy_changed(entries: Iterable[Entry], changes: Mapping[int, Any]) -> tuple[Entry, ...]:
    """Copy changed entries, unless an interrupted run has added the copy, and seal a sealed log again.

    An older state of a flag is not copied: readers would take its copy for the latest.
    """
    entries = list(entries)
    records = [e.record for e in entries]
    current = {id(record) for record in drop_superseded_labels(records)}
    latest = {_identify_version(e.record): e.seq for e in entries}
    copies = [
        replace(e, record=changes[e.seq])
        for e in entries
        if changes.get(e.seq) is not None
        and id(e.record) in current
        and (_identify_version(e.record) is None or latest[_identify_version(e.record)] == e.seq)
    ]
    seals = [e for e in entries if isinstance(e.record, Closed)]
    return (*(copy for copy in copies if copy.record not in records), *seals[-1:])


class _Traces:
    """A participant's words and names, to find them in what others say and write."""

    def __init__(self, entries: Iterable[Entry], own: Participant, other_ids: set[str], names: Collection[str]) -> None:
        """Take speech without a speaker as theirs. `other_ids` are those of the other participants."""
        self._ids = _collect_ids([own])
        self._other_ids = other_ids
        utterances = [e.record for e in entries if isinstance(e.record, Utterance)]
        own_speech = [u for u in utterances if self._may_be_own(u) and u.text != WITHHELD]
        other_texts = [u.text for u in utterances if not self._may_be_own(u)]
        # The start and the stop of one speech have the same text.
        robot_texts = (e.record.text for e in entries if isinstance(e.record, RobotSpeech))
        other_texts += [text for text, _ in groupby(robot_texts)]
        self._utterance_ids = {u.utterance_id for u in own_speech}
        self._own_words = "".join(normalize_words(u.text) for u in own_speech)
        self._other_words = "".join(map(normalize_words, other_texts))
        self._runs = WordRuns()
        for utterance in own_speech:
            self._runs.add(utterance.text)
        ids = [own.pseudonym, *(i for i in own.person_ids if len(i) >= _MIN_ID_CHARACTERS)]
        patterns = [*(rf"(?<!\w){re.escape(i)}(?!\w)" for i in ids), *(rf"(?i:{make_name_pattern(n)})" for n in names)]
        self._any_name = re.compile("|".join([*patterns, *map(make_part_pattern, split_names(names))]))

    def withhold_words(self, record: Any) -> Any:
        """Withhold all that a record quotes or says in words, and the participant's words anywhere else in it."""
        return clean_texts(withhold_words(record), lambda text: self._runs.replace_in(text, WITHHELD))

    def is_about_participant(self, record: Any) -> bool:
        """Whether a record is about the participant or about nobody who is named, or names or quotes them."""
        persons = collect_person_ids(record)
        is_about_nobody = _may_concern_anybody(record) and not persons & self._other_ids
        if persons & self._ids or is_about_nobody:
            return True
        return bool(self._any_name.search(_join_texts(record))) or self._is_quoted(record, self._is_only_own)

    def has_words(self, record: Any, *, is_alone: bool) -> bool:
        """Whether a record is speech of the participant, or quotes them. Who `is_alone` said all that people said."""
        if isinstance(record, Utterance) and record.speaker is not Speaker.ROBOT:
            return is_alone or self._may_be_own(record)
        return self._is_quoted(record, self._is_not_of_others)

    def _may_be_own(self, utterance: Utterance) -> bool:
        return utterance.speaker is not Speaker.ROBOT and utterance.speaker_id not in self._other_ids

    def _is_quoted(self, record: Any, is_own_quote: Callable[[str], bool]) -> bool:
        """Whether a record repeats the participant's words, or quotes what may be theirs.

        Speech does neither: only the words are taken out of it.
        """
        if isinstance(record, Utterance | RobotSpeech):
            return False
        is_run_in = self._runs.have_match_in(normalize_words(_join_texts(record)).split())
        is_evidence = isinstance(record, SocialFlag) and any(
            fact.utterance_id in self._utterance_ids for fact in record.evidence
        )
        return is_run_in or is_evidence or any(map(is_own_quote, _list_quotes(record)))

    def _is_only_own(self, quote: str) -> bool:
        plain = normalize_words(quote)
        return bool(plain.strip()) and plain in self._own_words and plain not in self._other_words

    def _is_not_of_others(self, quote: str) -> bool:
        plain = normalize_words(quote)
        return bool(plain.strip()) and plain != normalize_words(WITHHELD) and plain not in self._other_words


def _may_concern_anybody(record: Any) -> bool:
    """Whether a record that names no person may still be about one."""
    match record:
        case Utterance():
            return record.speaker is not Speaker.ROBOT
        case SocialFlag():
            return True
        case Presence():
            return bool(record.persons)
        case _:
            return False


def _list_quotes(record: Any) -> list[str]:
    """List the quotes of a record. A correction quotes what the robot had better said, so it is left out."""
    match record:
        case SocialFlag():
            return [*(fact.quote for fact in record.evidence), *find_quotes(record.rationale)]
        case Decision():
            return [*find_quotes(record.situation), *find_quotes(record.explanation)]
        case _:
            return []


def _join_texts(record: Any) -> str:
    return "\n".join(_iterate_texts(to_plain(record)))


def _iterate_texts(plain: Any) -> Iterator[str]:
    """Yield all text in the plain form of a record."""
    if isinstance(plain, str):
        yield plain
    elif isinstance(plain, list | dict):
        for part in plain.values() if isinstance(plain, dict) else plain:
            yield from _iterate_texts(part)
