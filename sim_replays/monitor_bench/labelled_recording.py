"""Recordings with labelled intervals: the file of labels, the monitor's flags in the bag, and their scores."""

import csv
import difflib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from norm_core.records.flag import Attribute, FlagState, Polarity, SocialFlag
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Speaker, Utterance
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import ReplayClock, ns_to_s, s_to_ns
from norm_monitor.context.turns import turns_of
from norm_monitor.encounters.encounter import Basis
from norm_monitor.encounters.library import TrueEvent, TrueTurn, Truth
from norm_monitor.monitor import Monitor
from norm_monitor.windows.cutter import Entry
from scoring.intervals import percentiles
from sim_replays.monitor_bench.event_metrics import (
    TOLERANCES_S,
    Alarm,
    EventSession,
    OnlineScores,
    match_alarms,
    score_online,
)

MOST_SHOWN = 20

Row = dict[str, str]


class LabelFileError(TactfulError, ValueError):
    """A label file cannot be used; the message has one line per fault."""


def read_rows(path: Path, columns: Sequence[str]) -> list[tuple[int, Row]]:
    """Return the stripped cells of these columns, with the number of the line. Raises LabelFileError."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            header = [(name or "").strip() for name in reader.fieldnames or ()]
            if missing := [name for name in columns if name not in header]:
                raise LabelFileError(
                    f"{path}, line 1: needs the columns {', '.join(columns)} and has no {', '.join(missing)}"
                )
            reader.fieldnames = header
            rows = [(reader.line_num, row) for row in reader]
    except OSError as error:
        raise LabelFileError(f"{path}: cannot be read: {error.strerror}; check the path") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise LabelFileError(f"{path}: is no CSV in UTF-8: {error}") from error
    refuse(path, [f"line {line}: has more cells than the header has columns" for line, row in rows if None in row])
    return [(line, {column: (row[column] or "").strip() for column in columns}) for line, row in rows]


def refuse(path: Path, faults: Sequence[str]) -> None:
    """Raise LabelFileError if there are faults, with one line per fault, up to a limit."""
    if faults:
        beyond = [f"{len(faults) - MOST_SHOWN} more"] if len(faults) > MOST_SHOWN else []
        raise LabelFileError("\n".join(f"{path}, {fault}" for fault in (*faults[:MOST_SHOWN], *beyond)))


COLUMNS = ("class", "onset_s", "offset_s")


class LabelClass(StrEnum):
    """ERR@HRI's classes: the first three from 2024, the last from 2025."""

    ROBOT_MISTAKE = "robot_mistake"
    USER_AWKWARDNESS = "user_awkwardness"
    INTERACTION_RUPTURE = "interaction_rupture"
    USER_CORRECTION = "user_correction"  # the person tries to correct what does not meet their expectation


_SHORT = {
    "rm": LabelClass.ROBOT_MISTAKE,
    "ua": LabelClass.USER_AWKWARDNESS,
    "ir": LabelClass.INTERACTION_RUPTURE,
    "uc": LabelClass.USER_CORRECTION,
}


@record
class Interval:
    """One labelled interval in bag time."""

    label: LabelClass
    onset_ns: int
    offset_ns: int


def read_intervals(path: Path, start_ns: int, end_ns: int) -> tuple[Interval, ...]:
    """Read a bag's labels in order of time. The file counts seconds from the bag's first message.

    Raises LabelFileError, with every fault.
    """
    rows = read_rows(path, COLUMNS)
    faults: list[str] = []
    intervals: list[tuple[int, Interval]] = []
    for line, row in rows:
        try:
            intervals.append((line, _interval(row, start_ns, end_ns)))
        except ValueError as fault:
            faults.append(f"line {line}: {fault}")
    faults += _overlaps(intervals)
    refuse(path, faults)
    return tuple(
        sorted(
            (interval for _, interval in intervals),
            key=lambda interval: (interval.onset_ns, interval.offset_ns, interval.label),
        )
    )


def _interval(row: Row, start_ns: int, end_ns: int) -> Interval:
    onset_s, offset_s = _seconds(row, "onset_s"), _seconds(row, "offset_s")
    if offset_s <= onset_s:
        raise ValueError(f"offset_s {offset_s:g} is not after onset_s {onset_s:g}")
    length_s = (end_ns - start_ns) / 1e9
    if onset_s >= length_s:
        raise ValueError(f"onset_s {onset_s:g} lies after the bag's end at {length_s:.1f} s: is this its file?")
    return Interval(
        label=_label(row["class"]),
        onset_ns=start_ns + s_to_ns(onset_s),
        offset_ns=min(start_ns + s_to_ns(offset_s), end_ns),
    )


def _seconds(row: Row, column: str) -> float:
    text = row[column]
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{column} is {text!r} and no number of seconds") from None
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{column} is {text}: it counts from the bag's first message, at 0")
    return value


def _label(name: str) -> LabelClass:
    plain = name.lower().replace(" ", "_").replace("-", "_")
    if plain in _SHORT:
        return _SHORT[plain]
    if plain in set(LabelClass):
        return LabelClass(plain)
    near = difflib.get_close_matches(plain, [*LabelClass, *_SHORT], n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    classes = ", ".join(f"{long} ({short})" for short, long in _SHORT.items())
    raise ValueError(f"{name!r} is no class; {hint}they are {classes}")


def _overlaps(intervals: list[tuple[int, Interval]]) -> Iterator[str]:
    """Report overlapping labels of one class: two coders' labels, or a slip."""
    newest: dict[LabelClass, tuple[int, Interval]] = {}
    for line, interval in sorted(intervals, key=lambda pair: (pair[1].onset_ns, pair[0])):
        before = newest.get(interval.label)
        if before and interval.onset_ns < before[1].offset_ns:
            yield f"line {line}: overlaps the {interval.label} of line {before[0]}; join them, or use a file a coder"
        if before is None or interval.offset_ns > before[1].offset_ns:
            newest[interval.label] = (line, interval)


@record
class RaisedFlag:
    """A flag in its final state, and the bag time it first appeared."""

    flag: SocialFlag
    known_ns: int


@record
class LabelledRecording:
    """The labels of a bag, and the flags in it."""

    name: str
    start_ns: int
    end_ns: int
    labels: tuple[Interval, ...]
    raised: tuple[RaisedFlag, ...]  # only errors, because competences are not labelled
    robot_turns: tuple[tuple[int, int], ...] = ()
    utterances: int = 0  # of people, with words


def record_flags(  # noqa: PLR0917
    name: str,
    bounds_ns: tuple[int, int],
    labels: tuple[Interval, ...],
    records: Iterable[tuple[int, Entry]],
    monitor: Monitor,
    clock: ReplayClock,
) -> LabelledRecording:
    """Run a monitor on a bag's records, and pair its flags with the labels."""
    first: dict[str, RaisedFlag] = {}
    heard: list[Utterance] = []
    edges: list[RobotSpeech] = []
    utterances = 0

    def note(flags: Iterable[SocialFlag]) -> None:
        for flag in flags:
            if flag.polarity is not Polarity.ERROR or flag.state is FlagState.WITHDRAWN:
                first.pop(flag.event_id, None)
            else:
                raised = first.get(flag.event_id) or RaisedFlag(flag=flag, known_ns=clock.now_ns())
                first[flag.event_id] = replace(raised, flag=flag)

    for now_ns, entry in records:
        clock.advance_to(max(now_ns, clock.now_ns()))
        if isinstance(entry, RobotSpeech):
            edges.append(entry)
        elif isinstance(entry, Utterance) and entry.final and entry.speaker is Speaker.ROBOT:
            heard.append(entry)
        elif isinstance(entry, Utterance) and entry.final and entry.text.strip():
            utterances += 1
        note(monitor.take(entry))
    note(monitor.end_input())
    turns = turns_of(heard, edges, bounds_ns[1])
    return LabelledRecording(
        name=name,
        start_ns=bounds_ns[0],
        end_ns=bounds_ns[1],
        labels=labels,
        raised=tuple(sorted(first.values(), key=lambda flag: flag.flag.onset_ns)),
        robot_turns=tuple((turn.start_ns, turn.end_ns) for turn in turns),
        utterances=utterances,
    )


def session_of(recording: LabelledRecording, label: LabelClass | None = None) -> EventSession:
    """Convert to a session for the onset measures. Any error flag may match any label.

    Without a class, overlapping labels become one event, such as a mistake and its rupture.
    """
    spans = [(coded.onset_ns, coded.offset_ns) for coded in recording.labels if label in (None, coded.label)]
    events = tuple(
        TrueEvent(
            polarity=Polarity.ERROR,
            attributes=tuple(Attribute),
            onset_ns=onset_ns,
            offset_ns=offset_ns,
            basis=Basis.UNDERSTANDING,  # the coder's basis is unknown, and no measure uses it
            evidence=(),
            rationale=label.value if label else "",
        )
        for onset_ns, offset_ns in join_recordings(spans)
    )
    turns = tuple(
        TrueTurn(turn_id=str(at), speaker=Speaker.ROBOT, speaker_id="", text="", start_ns=start_ns, end_ns=end_ns)
        for at, (start_ns, end_ns) in enumerate(recording.robot_turns)
    )
    alarms = tuple(Alarm.of(flag.flag, flag.known_ns) for flag in recording.raised)
    truth = Truth(
        encounter_id=recording.name,
        language="",
        seed=0,
        start_ns=recording.start_ns,
        end_ns=recording.end_ns,
        turns=turns,
        events=events,
    )
    return EventSession(truth=truth, alarms=alarms)


def join_recordings(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge overlapping spans."""
    joined: list[tuple[int, int]] = []
    for start_ns, end_ns in sorted(spans):
        if joined and start_ns < joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end_ns)
        else:
            joined.append((start_ns, end_ns))
    return joined


@record
class ByClass:
    """The detection of one class of labels. Shares are in percent."""

    labels: int
    recall: dict[str, float]  # by onset tolerance, with one flag per label
    detected: float  # a flag overlaps it, however late
    time_to_detection_s: dict[str, float]


@record
class IntervalAgreement:
    """All measures over recordings, for errors only. `online` holds those of onsets."""

    online: OnlineScores
    by_class: dict[str, ByClass]


def interval_agreement(recordings: Sequence[LabelledRecording], at_s: float = 2.0) -> IntervalAgreement:
    """Compute every measure over the recordings, with `at_s` as the onset tolerance of pairs."""
    return IntervalAgreement(
        online=score_online([session_of(recording) for recording in recordings], None, at_s),
        by_class={
            label.value: _by_class(recordings, label, at_s)
            for label in LabelClass
            if any(coded.label is label for recording in recordings for coded in recording.labels)
        },
    )


def _by_class(recordings: Sequence[LabelledRecording], label: LabelClass, at_s: float) -> ByClass:
    sessions = [session_of(recording, label) for recording in recordings]
    count = sum(len(session.truth.events) for session in sessions)
    waits_s = []
    for recording in recordings:
        for interval in (i for i in recording.labels if i.label is label):
            known_at_ns = [r.known_ns for r in recording.raised if _lies_over(r, interval, at_s, recording.end_ns)]
            if known_at_ns:
                waits_s.append(ns_to_s(min(known_at_ns) - interval.onset_ns))
    return ByClass(
        labels=count,
        recall={f"{t:g}": 100 * sum(len(match_alarms(s, t)) for s in sessions) / count for t in TOLERANCES_S},
        detected=100 * len(waits_s) / count,
        time_to_detection_s=percentiles(waits_s),
    )


def _lies_over(raised: RaisedFlag, interval: Interval, at_s: float, end_ns: int) -> bool:
    """Whether a flag and a label overlap, or start within the tolerance."""
    onset_ns, offset_ns = _span(raised, end_ns)
    near = abs(onset_ns - interval.onset_ns) <= s_to_ns(at_s)
    return near or (onset_ns < interval.offset_ns and interval.onset_ns < offset_ns)


def _span(raised: RaisedFlag, end_ns: int) -> tuple[int, int]:
    flag = raised.flag
    return flag.onset_ns, max(end_ns, flag.onset_ns) if flag.offset_ns is None else flag.offset_ns
