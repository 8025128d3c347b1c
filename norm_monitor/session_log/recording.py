"""One session from a log or a bag: the input of exports, agreement and report."""

import hashlib
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
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
from norm_monitor.senses.robot_voice.robot_voice import LEAD_NS, RobotTurn, RobotVoice
from norm_monitor.session_log.reader import LogError, is_log, read_sound
from norm_monitor.session_log.schema import (
    FRAME_TYPES,
    BagRef,
    Coding,
    Consent,
    Entry,
    Label,
    Recovered,
    SessionInfo,
    Tombstone,
    Withdrawal,
    apply_withdrawals,
)

# A time farther from the middle of a session is of another clock.
_MAX_DISTANCE_NS = 24 * 3600 * NS_PER_S
# The records of a bag that a log stores.
LOGGED_TYPES = (SocialFlag, Decision, Utterance, RobotSpeech, Presence)


def drop_superseded_labels(records: Sequence[Any]) -> list[Any]:
    """Leave out labels that a later revision by their coder replaces."""
    revisions = _find_latest_revisions(records)
    return [
        record
        for index, record in enumerate(records)
        if not (isinstance(record, Label) and index < revisions.get(record.coder, 0))
    ]


def count_revisions(records: Sequence[Any]) -> dict[str, int]:
    """Count how often each coder revised their coding. A retraction does not count."""
    coders = [
        record.coder for record in records if isinstance(record, Coding) and record.replaces and not record.retracts
    ]
    return {coder: coders.count(coder) for coder in sorted({*coders})}


def find_incomplete_revisions(records: Sequence[Any]) -> dict[str, tuple[int, int]]:
    """Find coders whose latest revision lacks labels. Return the counts of written and announced labels by coder."""
    incomplete = {}
    for coder, index in _find_latest_revisions(records).items():
        written_count = sum(isinstance(record, Label) and record.coder == coder for record in records[index:])
        if written_count < records[index].labels:
            incomplete[coder] = (written_count, records[index].labels)
    return incomplete


def _find_latest_revisions(records: Sequence[Any]) -> dict[str, int]:
    """Return the index of each coder's latest revision."""
    return {
        record.coder: index for index, record in enumerate(records) if isinstance(record, Coding) and record.replaces
    }


def replace_echo(
    utterances: Iterable[Utterance], robot_speech: Iterable[RobotSpeech], end_ns: int
) -> tuple[Utterance, ...]:
    """Replace the robot's echo by the words that its topics state. Without stated words, the heard ones remain."""
    edges = tuple(robot_speech)
    voice = RobotVoice(max_edges=len(edges))
    for edge in edges:
        voice.feed(edge, None)
    turns = [turn for turn in voice.find_context(0, end_ns).turns if turn.text]
    locales = {edge.speech_id: edge.locale for edge in edges if edge.locale}
    without_echo = (
        utterance
        for utterance in utterances
        if utterance.speaker is not Speaker.ROBOT or not _is_echo(utterance, turns)
    )
    stated = (_make_utterance(turn, locales.get(turn.speech_id, "")) for turn in turns)
    return tuple(sorted((*without_echo, *stated), key=lambda utterance: (utterance.start_ns, utterance.utterance_id)))


def _is_echo(utterance: Utterance, turns: Iterable[RobotTurn]) -> bool:
    """Whether an utterance overlaps a turn of the robot, with the echo that follows it."""
    return any(
        utterance.start_ns < turn.rings_until_ns and utterance.end_ns > turn.start_ns - LEAD_NS for turn in turns
    )


def _make_utterance(turn: RobotTurn, locale: str) -> Utterance:
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
    """Whether entries were erased, and nothing but the frame of a log is left."""
    records = [entry.record for entry in entries]
    return None in records and all(record is None or isinstance(record, FRAME_TYPES) for record in records)


def explain_missing(entries: Iterable[Entry]) -> str:
    """Explain why no figure may count a session, because part of it was erased. Empty: it counts."""
    entries = tuple(entries)
    records = [entry.record for entry in entries]
    withdrawals = _select(records, Withdrawal)
    withdrawn = [withdrawal.participant for withdrawal in withdrawals if Consent.EVERYTHING in withdrawal.consents]
    if withdrawn:
        return f"{' and '.join(dict.fromkeys(withdrawn))} withdrew everything"
    is_expired = any(not tombstone.participant for tombstone in _select(records, Tombstone))
    return "was erased" if is_expired or is_emptied(entries) else ""


T = TypeVar("T")


@record
class Recording:
    """A session, with its flags and labels in their final state. Withdrawn flags and removed labels are left out.

    `head` is the hash of the log or bag. `missing` explains why no figure may count the session.
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
    labels: tuple[Label, ...] = ()
    codings: tuple[Coding, ...] = ()
    notes: tuple[str, ...] = ()  # for readers of an export
    missing: str = ""

    @property
    def speech(self) -> tuple[Utterance, ...]:
        """All utterances: of the robot as its topics state them, and of others as they were heard."""
        return replace_echo(self.utterances, self.robot_speech, self.end_ns)

    @property
    def coders(self) -> frozenset[str]:
        """The coders of the session: those with labels, and those who stated that there is nothing to label."""
        without_labels = {coding.coder for coding in self.codings if not coding.labels}
        return frozenset({label.coder for label in self.labels} | without_labels)


def open_recording(path: Path) -> Recording:
    """Open the session in a log or a bag. Raises LogError for anything else."""
    if is_log(path):
        return load_log(path)
    if is_bag(path):
        return load_bag(path)
    if not path.exists():
        raise LogError(f"{path}: there is no such log or bag; check the path")
    raise LogError(f"{path}: is neither a study log (events-*.jsonl) nor a rosbag2 bag (.mcap or .db3); name one")


def check_distinct(recordings: Iterable[Recording]) -> None:
    """Raise LogError if two recordings are of one session."""
    recordings_by_session: dict[tuple[str, str], Recording] = {}
    for recording in recordings:
        key = (recording.info.study, recording.info.session)
        other = recordings_by_session.setdefault(key, recording)
        if other is not recording:
            problem = "copies of each other" if other.head == recording.head else "two logs of one session"
            raise LogError(
                f"{other.source} and {recording.source} are {problem} (study {key[0] or 'unnamed'}, session {key[1]}): "
                "give one of them, or log one again under another session name"
            )


def load_log(path: Path) -> Recording:
    """Load the session in a log. Raises LogError unless the log is valid."""
    contents = read_sound(path)
    records = [entry.record for entry in contents.entries if entry.record is not None]
    info = next((r for r in records if isinstance(r, SessionInfo)), None)
    if info is None:
        raise LogError(f"{path}: does not say whose session it is: its first entry is missing; log its bag again")
    if bags := _select(records, BagRef):
        info = replace(info, bag=bags[-1])
    withdrawals = _select(records, Withdrawal)
    info = replace(info, participants=apply_withdrawals(info.participants, withdrawals))
    missing = explain_missing(contents.entries)
    notes = [f"{missing}: flags, labels or speech are missing here, so no figure counts the session"] if missing else []
    if contents.torn_bytes:
        notes.append("the last entry was cut short by a crash and is not shown")
    if not contents.sealed:
        notes.append("the recording was not ended properly; the end of the session is that of its last entry")
    notes += [
        f"{count_of(len(tombstone.seqs), 'entry', 'entries') if tombstone.seqs else 'some entries'} erased: "
        f"{tombstone.reason}"
        for tombstone in _select(records, Tombstone)
    ]
    if contents.half_erased:
        notes.append(
            f"an erasure was interrupted: {contents.half_erased} of these are left out here but still on the disk; "
            "run study withdraw or expire again"
        )
    if losses := [loss for recovered in _select(records, Recovered) for loss in recovered.lost]:
        notes.append(f"this log is not whole, and lacks {'; '.join(losses)}")
    return replace(_build_recording(info, path, contents.head, records, tuple(notes)), missing=missing)


def read_bag_records(bag: BagReader, kinds: Iterable[type] = LOGGED_TYPES) -> Iterator[tuple[int, Any]]:
    """Yield a bag's records of some kinds with their times; None for a message that cannot be read."""
    types = {message_type(kind) for kind in kinds}
    topics = [topic.topic for topic in bag.topics if topic.type_name in types]
    for message in bag.messages(topics) if topics else ():
        try:
            yield message.stamp_ns, bag.decode(message)
        except MessageError:
            yield message.stamp_ns, None


def load_bag(path: Path) -> Recording:
    """Load the session in a bag by message types; topic names do not matter."""
    with BagReader(path) as bag:
        messages = [record for _, record in read_bag_records(bag)]
        bounds = bag.bounds_ns or (0, 0)
    records = [record for record in messages if record is not None]
    unreadable_count = len(messages) - len(records)
    reference = make_bag_ref(path, bounds[0])
    info = SessionInfo(study="", session=reference.name, bag=reference, start_ns=bounds[0], end_ns=bounds[1])
    notes = [f"{count_of(unreadable_count, 'message')} of the bag cannot be read"] if unreadable_count else []
    if not any(isinstance(record, SocialFlag) for record in records):
        notes.append(f"{path} holds no flags: tactful study add runs the monitor over it, into a log to give here")
    return _build_recording(info, path, reference.sha256, records, tuple(notes))


def make_bag_ref(path: Path, offset_ns: int) -> BagRef:
    """Return the name, hash and offset of a bag. The hash covers its files in order of their names."""
    digest = hashlib.sha256()
    for file in sorted(list_files(path).files):
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return BagRef(name=path.resolve().name, sha256=digest.hexdigest(), offset_ns=offset_ns)


def _build_recording(info: SessionInfo, path: Path, head: str, records: list[Any], notes: tuple[str, ...]) -> Recording:
    records = drop_superseded_labels(records)
    last_states = {flag.event_id: flag for flag in _select(records, SocialFlag)}
    flags = {event_id: flag for event_id, flag in last_states.items() if flag.state is not FlagState.WITHDRAWN}
    latest_codings = {coding.coder: coding for coding in _select(records, Coding)}
    codings = {coder: coding for coder, coding in latest_codings.items() if not coding.retracts}
    utterances = {u.utterance_id: u for u in _select(records, Utterance) if u.final}
    times = [*(f.onset_ns for f in flags.values()), *(f.known_until_ns for f in flags.values())]
    times += [t for u in utterances.values() for t in (u.start_ns, u.end_ns)]
    times += [p.stamp_ns for p in _select(records, Presence)] + [d.decided_ns for d in _select(records, Decision)]
    middle_ns = statistics.median_low(times) if times else 0
    stray_count = sum(abs(t - middle_ns) > _MAX_DISTANCE_NS for t in times)
    if stray_count:
        times = [t for t in times if abs(t - middle_ns) <= _MAX_DISTANCE_NS]
        notes = (*notes, f"{count_of(stray_count, 'time')} more than a day from the session's others left out")
    start_ns = min(times, default=0) if info.start_ns is None else info.start_ns
    end_ns = max(times, default=start_ns) if info.end_ns is None else info.end_ns
    return Recording(
        info=info,
        source=path,
        head=head,
        start_ns=min([start_ns, *times]),
        end_ns=max([end_ns, *times]),
        flags=tuple(sorted(flags.values(), key=lambda flag: (flag.onset_ns, flag.event_id))),
        decisions=tuple(sorted(_select(records, Decision), key=lambda decision: decision.decided_ns)),
        utterances=tuple(sorted(utterances.values(), key=lambda u: (u.start_ns, u.utterance_id))),
        robot_speech=tuple(sorted(_select(records, RobotSpeech), key=lambda speech: speech.stamp_ns)),
        presences=tuple(sorted(_select(records, Presence), key=lambda presence: presence.stamp_ns)),
        labels=tuple(_select(records, Label)),
        codings=tuple(codings.values()),
        notes=notes,
    )


def _select(records: list[Any], cls: type[T]) -> list[T]:
    """Select the records of a type."""
    return [record for record in records if isinstance(record, cls)]
