"""One session from a log or a bag: the input of exports, agreement and report."""

import hashlib
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeVar

from norm_core.bags.reader import BagReader
from norm_core.bags.storage import is_bag, list_files
from norm_core.records.decision import Decision
from norm_core.records.flag import FlagState, SocialFlag
from norm_core.records.messages import MessageError, message_type
from norm_core.records.presence import Presence
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Speaker, Utterance
from norm_core.runtime.time import NS_PER_S
from norm_core.runtime.wording import count_of
from norm_monitor.senses.robot_voice.robot_voice import LEAD_NS, RobotTurn, RobotVoice, RobotVoiceConfig
from norm_monitor.session_log.reader import LogError, is_log, read_sound
from norm_monitor.session_log.schema import (
    CONSENSUS,
    FRAME,
    BagRef,
    Coding,
    Consent,
    Entry,
    Label,
    LabelRemoval,
    Recovered,
    Review,
    SessionInfo,
    Tombstone,
    Withdrawal,
    after_withdrawals,
)

_MAX_LENGTH_NS = 24 * 3600 * NS_PER_S
BAGGED = (SocialFlag, Decision, Utterance, RobotSpeech, Presence)


def without_superseded(records: Sequence[Any]) -> list[Any]:
    """Leave out labels that a later revision by their coder replaces."""
    revised = _latest_revisions(records)
    return [
        record
        for number, record in enumerate(records)
        if not (isinstance(record, Label) and number < revised.get(record.coder, 0))
    ]


def revision_counts(records: Sequence[Any]) -> dict[str, int]:
    """Count how often each coder revised their coding. A retraction is no revision."""
    coders = [
        record.coder for record in records if isinstance(record, Coding) and record.replaces and not record.retracts
    ]
    return {coder: coders.count(coder) for coder in sorted({*coders})}


def incomplete_revisions(records: Sequence[Any]) -> dict[str, tuple[int, int]]:
    """Find coders whose latest revision lacks labels: those in the log, and those that it announced."""
    incomplete = {}
    for coder, number in _latest_revisions(records).items():
        written = sum(isinstance(record, Label) and record.coder == coder for record in records[number:])
        if written < records[number].labels:
            incomplete[coder] = (written, records[number].labels)
    return incomplete


def _latest_revisions(records: Sequence[Any]) -> dict[str, int]:
    return {
        record.coder: number for number, record in enumerate(records) if isinstance(record, Coding) and record.replaces
    }


def spoken_utterances(
    utterances: Iterable[Utterance], robot_speech: Iterable[RobotSpeech], end_ns: int
) -> tuple[Utterance, ...]:
    """Replace the robot's echo by the words that its topics state. Where they state none, the words heard remain."""
    edges = tuple(robot_speech)
    voice = RobotVoice(RobotVoiceConfig(), max_edges=len(edges))
    for edge in edges:
        voice.feed(edge, None)
    turns = [turn for turn in voice.about(0, end_ns).turns if turn.text]
    locales = {edge.speech_id: edge.locale for edge in edges if edge.locale}
    without_echo = (
        utterance
        for utterance in utterances
        if utterance.speaker is not Speaker.ROBOT or not _is_echo(utterance, turns)
    )
    stated = (_utterance(turn, locales.get(turn.speech_id, "")) for turn in turns)
    return tuple(sorted((*without_echo, *stated), key=lambda utterance: (utterance.start_ns, utterance.utterance_id)))


def _is_echo(utterance: Utterance, turns: Iterable[RobotTurn]) -> bool:
    return any(
        utterance.start_ns < turn.rings_until_ns and utterance.end_ns > turn.start_ns - LEAD_NS for turn in turns
    )


def _utterance(turn: RobotTurn, locale: str) -> Utterance:
    return Utterance(
        stamp_ns=turn.start_ns,
        utterance_id=turn.speech_id or f"robot@{turn.start_ns}",
        speaker=Speaker.ROBOT,
        text=turn.text,
        locale=locale,
        start_ns=turn.start_ns,
        end_ns=turn.end_ns,
    )


def is_emptied(entries: Iterable[Entry]) -> bool:
    """Whether entries were erased, and nothing but a log's frame is left."""
    left = [e.record for e in entries]
    return None in left and all(record is None or isinstance(record, FRAME) for record in left)


def reason_missing(entries: Iterable[Entry]) -> str:
    """Return why no figure may count a session, because part of it was erased. Empty: it counts."""
    entries = tuple(entries)
    records = [e.record for e in entries]
    gone = [w.participant for w in _of(records, Withdrawal) if Consent.EVERYTHING in w.consents]
    if gone:
        return f"{' and '.join(dict.fromkeys(gone))} withdrew everything"
    expired = any(not stone.participant for stone in _of(records, Tombstone))
    return "was erased" if expired or is_emptied(entries) else ""


T = TypeVar("T")


@record
class Recording:
    """A session, with its flags and labels in their final state. Withdrawn flags and removed labels are left out.

    `head` is the hash of the log or bag. `drafts` are labels of codings in the page that are not done. `missing` tells
    why no figure may count the session.
    """

    info: SessionInfo
    source: Path
    head: str
    start_ns: int
    end_ns: int
    flags: tuple[SocialFlag, ...] = ()
    decisions: tuple[Decision, ...] = ()
    utterances: tuple[Utterance, ...] = ()
    robot_speech: tuple[RobotSpeech, ...] = ()
    presences: tuple[Presence, ...] = ()
    reviews: tuple[Review, ...] = ()
    labels: tuple[Label, ...] = ()
    drafts: tuple[Label, ...] = ()
    removals: tuple[LabelRemoval, ...] = ()
    codings: tuple[Coding, ...] = ()
    views: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # by event: the cue behind each measured fact
    notes: tuple[str, ...] = ()  # for readers of an export
    missing: str = ""

    @property
    def speech(self) -> tuple[Utterance, ...]:
        """All utterances: the robot's words as its own topics state them, and those of others as they were heard."""
        return spoken_utterances(self.utterances, self.robot_speech, self.end_ns)

    @property
    def coders(self) -> frozenset[str]:
        """List who coded the session: coders with labels, and coders who found nothing. Counts erased labels."""
        found_nothing = {coding.coder for coding in self.codings if not coding.labels}
        return frozenset({label.coder for label in self.labels} | found_nothing) - {CONSENSUS}


def open_recording(path: Path) -> Recording:
    """Open the session in a log or a bag."""
    if is_log(path):
        return from_log(path)
    if is_bag(path):
        return from_bag(path)
    if not path.exists():
        raise LogError(f"{path}: there is no such log or bag; check the path")
    raise LogError(f"{path}: is neither a study log (events-*.jsonl) nor a rosbag2 bag (.mcap or .db3); name one")


def check_distinct(recordings: Iterable[Recording]) -> None:
    """Raise LogError if two recordings are of one session."""
    seen: dict[tuple[str, str], Recording] = {}
    for recording in recordings:
        key = (recording.info.study, recording.info.session)
        other = seen.setdefault(key, recording)
        if other is not recording:
            same = "a copy of one another" if other.head == recording.head else "two logs of one session"
            raise LogError(
                f"{other.source} and {recording.source} are {same} (study {key[0] or 'unnamed'}, session {key[1]}): "
                "give one of them, or log one again under another session name"
            )


def from_log(path: Path) -> Recording:
    """Read the session in a log. Raises an error unless the log is valid."""
    contents = read_sound(path)
    records = [entry.record for entry in contents.entries if entry.record is not None]
    info = next((r for r in records if isinstance(r, SessionInfo)), None)
    if info is None:
        raise LogError(f"{path}: does not say whose session it is: its first entry is missing; log its bag again")
    if named := _of(records, BagRef):
        info = replace(info, bag=named[-1])
    info = replace(info, participants=after_withdrawals(info.participants, _of(records, Withdrawal)))
    missing = reason_missing(contents.entries)
    notes = [f"{missing}: flags, labels or speech are missing here, so no figure counts the session"] if missing else []
    if contents.torn_bytes:
        notes.append("the last entry was cut short by a crash and is not shown")
    if not contents.sealed:
        notes.append("the recording was not ended properly; the end of the session is that of its last entry")
    notes += [
        f"{count_of(len(stone.seqs), 'entry', 'entries') if stone.seqs else 'some entries'} erased: {stone.reason}"
        for stone in _of(records, Tombstone)
    ]
    if contents.half_erased:
        notes.append(
            f"an erasure broke off: {contents.half_erased} of these are left out here and are still on the disk; "
            "run study withdraw or expire again"
        )
    if lost := [loss for recovered in _of(records, Recovered) for loss in recovered.lost]:
        notes.append(f"this log is not whole, and lacks {'; '.join(lost)}")
    return replace(_recording(info, path, contents.head, records, tuple(notes)), missing=missing)


def bag_records(bag: BagReader, kinds: Iterable[type] = BAGGED) -> Iterator[tuple[int, Any]]:
    """Yield a bag's records of some kinds with their times; None for a message that cannot be read."""
    wanted = {message_type(kind) for kind in kinds}
    topics = [topic.topic for topic in bag.topics if topic.type_name in wanted]
    for message in bag.messages(topics) if topics else ():
        try:
            yield message.stamp_ns, bag.decode(message)
        except MessageError:
            yield message.stamp_ns, None


def from_bag(path: Path) -> Recording:
    """Read the session in a bag by message types; topic names do not matter."""
    with BagReader(path) as bag:
        read_records = [record for _, record in bag_records(bag)]
        bounds = bag.bounds_ns or (0, 0)
    records = [record for record in read_records if record is not None]
    unreadable = len(read_records) - len(records)
    reference = bag_reference(path, bounds[0])
    info = SessionInfo(study="", session=reference.name, bag=reference, start_ns=bounds[0], end_ns=bounds[1])
    notes = [f"{count_of(unreadable, 'message')} of the bag cannot be read"] if unreadable else []
    if not any(isinstance(r, SocialFlag) for r in records):
        notes.append(f"{path} holds no flags: tactful study add runs the monitor over it, into a log to give here")
    return _recording(info, path, reference.sha256, records, tuple(notes))


def file_beside(recording: Recording, ending: str) -> Path:
    """Choose the default path of an output: beside its source, safe for any session name."""
    name = re.sub(r"[^\w .-]", "_", recording.info.session).lstrip(".") or "session"
    return recording.source.resolve().parent / f"{name}{ending}"


def bag_reference(path: Path, offset_ns: int) -> BagRef:
    """Return the name, hash and offset of a bag. The hash covers its files in order of their names."""
    digest = hashlib.sha256()
    for file in sorted(list_files(path).files):
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return BagRef(name=path.resolve().name, sha256=digest.hexdigest(), offset_ns=offset_ns)


def _recording(info: SessionInfo, path: Path, head: str, records: list[Any], notes: tuple[str, ...]) -> Recording:
    records = without_superseded(records)
    last = {flag.event_id: flag for flag in _of(records, SocialFlag)}
    flags = {event_id: flag for event_id, flag in last.items() if flag.state is not FlagState.WITHDRAWN}
    reviews = {(review.event_id, review.coder): review for review in _of(records, Review)}
    latest_codings = {coding.coder: coding for coding in _of(records, Coding)}
    codings = {coder: coding for coder, coding in latest_codings.items() if not coding.retracts}
    labels, removals = _current_labels(records)
    undone = [label.label_id != "" and label.coder not in {*codings, CONSENSUS} for label in labels]
    utterances = {u.utterance_id: u for u in _of(records, Utterance) if u.final}
    times = [*(f.onset_ns for f in flags.values()), *(f.known_until_ns for f in flags.values())]
    times += [t for u in utterances.values() for t in (u.start_ns, u.end_ns)]
    times += [p.stamp_ns for p in _of(records, Presence)] + [d.decided_ns for d in _of(records, Decision)]
    middle_ns = statistics.median_low(times) if times else 0
    stray = [t for t in times if abs(t - middle_ns) > _MAX_LENGTH_NS]
    if stray:
        times = [t for t in times if abs(t - middle_ns) <= _MAX_LENGTH_NS]
        notes = (*notes, f"{count_of(len(stray), 'time')} more than a day from the session's others left out")
    start_ns = min(times, default=0) if info.start_ns is None else info.start_ns
    end_ns = max(times, default=start_ns) if info.end_ns is None else info.end_ns
    return Recording(
        info=info,
        source=path,
        head=head,
        start_ns=min([start_ns, *times]),
        end_ns=max([end_ns, *times]),
        flags=tuple(sorted(flags.values(), key=lambda flag: (flag.onset_ns, flag.event_id))),
        decisions=tuple(sorted(_of(records, Decision), key=lambda decision: decision.decided_ns)),
        utterances=tuple(sorted(utterances.values(), key=lambda u: (u.start_ns, u.utterance_id))),
        robot_speech=tuple(sorted(_of(records, RobotSpeech), key=lambda speech: speech.stamp_ns)),
        presences=tuple(sorted(_of(records, Presence), key=lambda presence: presence.stamp_ns)),
        reviews=tuple(reviews.values()),
        labels=tuple(label for label, is_draft in zip(labels, undone, strict=True) if not is_draft),
        drafts=tuple(label for label, is_draft in zip(labels, undone, strict=True) if is_draft),
        removals=removals,
        codings=tuple(codings.values()),
        views=_views(_of(records, SocialFlag)),
        notes=notes,
    )


def _current_labels(records: list[Any]) -> tuple[list[Label], tuple[LabelRemoval, ...]]:
    """Collect the labels in their latest version, in the order of their first, and the removals that stand."""
    latest: dict[object, Label | LabelRemoval] = {}
    for number, entry in enumerate(records):
        if isinstance(entry, Label | LabelRemoval):
            latest[(entry.coder, entry.label_id) if entry.label_id else number] = entry
    current = list(latest.values())
    return _of(current, Label), tuple(_of(current, LabelRemoval))


def number_views(numbers: dict[tuple[str, float | None], int], flag: SocialFlag) -> tuple[int, ...]:
    """Number the cue behind each fact of an event's next state; `numbers` holds those of the states before.

    Several cues may support one event. Facts that appear in one state under a new measure belong to one cue.
    """
    newest = max(numbers.values(), default=-1) + 1
    return tuple(numbers.setdefault((fact.measure, fact.threshold), newest) for fact in flag.evidence)


def _views(states: list[SocialFlag]) -> dict[str, tuple[int, ...]]:
    numbers: dict[str, dict[tuple[str, float | None], int]] = {}
    return {flag.event_id: number_views(numbers.setdefault(flag.event_id, {}), flag) for flag in states}


def _of(records: list[Any], cls: type[T]) -> list[T]:
    return [r for r in records if isinstance(r, cls)]
