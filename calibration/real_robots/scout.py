"""The coded stretches of SCOUT as labelled units: what the monitor measures of them, with what coders marked."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from calibration.timed_talk import TimedTurn, make_talk_records, make_unlabelled_truth
from calibration.unit_examples import LabelledRecords, LabelledUnit, labelled_units
from norm_core.files.data_files import shipped_file
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import ns_to_s, s_to_ns
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.spoken_words import estimate_duration_ns, normalize
from norm_monitor.context.wording import is_sign_of_work
from norm_monitor.encounters.encounter import Basis
from norm_monitor.encounters.library import TrueEvent

CODINGS = shipped_file("calibration", "real_robots") / "scout_codings.jsonl"
# How much talk before a stretch the monitor hears, and how long before the first words it starts.
_LEAD_S, _START_S = 60.0, 5.0
# The share of words that a repeated request has in common with the first.
_SAME_SHARE = 0.6

Json = dict[str, Any]


@record
class CodedStretch:
    """A coded stretch of one person's talk with the robot."""

    person: str
    events_by_coder: Mapping[str, tuple[TrueEvent, ...]]
    units: tuple[LabelledUnit, ...]  # with the marks of either coder as labels
    hours: float


def coded_stretches(sessions: Path, meaning: TextMatcher, table: ThresholdTable) -> Iterator[CodedStretch]:
    """Run the monitor on each stretch of the sessions' file, and label the units that it measured."""
    return read_stretches(
        sessions,
        lambda talk, timed, coders: labelled_units(talk, timed.label(join_marks(coders)), meaning, table),
    )


def read_stretches(
    sessions: Path, find_units: Callable[[int, "TimedStretch", Json], Iterable[LabelledUnit]]
) -> Iterator[CodedStretch]:
    """Read each coded stretch of the sessions' file; its units are found by its number, its talk and its marks."""
    by_id = {session["id"]: session for session in read_sessions(sessions)}
    for talk, stretch in enumerate(read_sessions(CODINGS)):
        timed = TimedStretch.of(stretch, by_id[stretch["session"]])
        units = find_units(talk, timed, stretch["coders"])
        yield CodedStretch(
            person=person_of(stretch["session"]),
            events_by_coder={coder: timed.find_events(marks) for coder, marks in stretch["coders"].items()},
            units=tuple(unit for unit in units if unit.onset_ns >= s_to_ns(_LEAD_S)),
            hours=(stretch["end_s"] - stretch["start_s"]) / 3600,
        )


@record
class TimedStretch:
    """A stretch as the monitor hears it: from a while before its start, whose second is `from_s`."""

    session_id: str
    from_s: float
    until_ns: int
    turns: tuple[TimedTurn, ...]
    onset_by_row: Mapping[str, int]

    @classmethod
    def of(cls, stretch: Json, session: Json) -> "TimedStretch":
        """Cut a stretch from its session."""
        from_s, end_s = stretch["start_s"] - _LEAD_S, stretch["end_s"]
        rows = [row for row in read_rows(session) if from_s <= row["at_s"] < end_s]
        onsets_ns = [s_to_ns(row["at_s"] - from_s + _START_S) for row in rows]
        return cls(
            session_id=session["id"],
            from_s=from_s,
            until_ns=s_to_ns(end_s - from_s + _START_S),
            turns=tuple(_timed_turns(rows, onsets_ns)),
            onset_by_row={row["id"]: onset_ns for row, onset_ns in zip(rows, onsets_ns, strict=True)},
        )

    def label(self, marks: Sequence[Json]) -> LabelledRecords:
        """Return the records of the stretch, with marks as labels."""
        truth = make_unlabelled_truth(self.session_id, 0, self.until_ns)
        return LabelledRecords(
            given=tuple(make_talk_records(self.turns, 0, self.until_ns)),
            sources=(UTTERANCES,),
            truth=replace(truth, events=self.find_events(marks)),
        )

    def find_events(self, marks: Sequence[Json]) -> tuple[TrueEvent, ...]:
        """Return marks as labels, by their onsets."""
        events = [
            TrueEvent(
                polarity=Polarity(mark["polarity"]),
                attributes=tuple(map(Attribute, mark["attributes"])),
                onset_ns=onset_ns,
                offset_ns=onset_ns,
                basis=Basis.TIMING if mark["silence"] else Basis.WORDING,
                evidence=(),
                rationale=mark["why"],
            )
            for mark in marks
            if (onset_ns := self._find_onset_ns(mark)) is not None
        ]
        return tuple(sorted(events, key=lambda event: event.onset_ns))

    def _find_onset_ns(self, mark: Json) -> int | None:
        """Return the onset of a mark; a silence begins with the last words, or sign of work, before it is an error."""
        onset_ns = self.onset_by_row.get(mark["row"])
        if onset_ns is None or not mark["silence"]:
            return onset_ns
        held_from_ns = s_to_ns(mark["onset_s"] - self.from_s + _START_S)
        waits = (turn for turn in self.turns if turn.speaker_id or is_sign_of_work(turn.text))
        return max(
            [onset_ns, *(turn.end_ns for turn in waits if onset_ns <= turn.start_ns and turn.end_ns < held_from_ns)]
        )


def join_marks(coders: Mapping[str, Sequence[Json]]) -> list[Json]:
    """Return the marks of either coder; of two on one row with one polarity the first coder's."""
    joined = {(mark["row"], mark["polarity"]): mark for marks in reversed(list(coders.values())) for mark in marks}
    return sorted(joined.values(), key=lambda mark: float(mark["onset_s"]))


def _timed_turns(rows: Sequence[Json], onsets_ns: Sequence[int]) -> Iterator[TimedTurn]:
    person_end_ns = 0
    for row, at_ns, next_ns in zip(rows, onsets_ns, [*onsets_ns[1:], None], strict=True):
        duration_ns = estimate_duration_ns(row["text"])
        if row["by"] == "robot":
            stop_ns = at_ns + duration_ns if next_ns is None else min(at_ns + duration_ns, next_ns)
            yield TimedTurn(speaker_id="", text=row["text"], start_ns=at_ns, end_ns=max(at_ns + 1, stop_ns))
        else:  # a person's row is stamped as its words end
            start_ns = min(at_ns, max(at_ns - duration_ns, person_end_ns))
            yield TimedTurn(speaker_id="person", text=row["text"], start_ns=start_ns, end_ns=at_ns)
            person_end_ns = at_ns


def read_rows(session: Json) -> list[Json]:
    """Return the rows with a time and words, by time, without marks in angle brackets."""
    timed = sorted((row for row in session["turns"] if row["at_s"] is not None), key=itemgetter("at_s"))
    return [{**row, "text": text} for row in timed if (text := _words(row["text"]))]


def read_sessions(path: Path) -> list[Json]:
    """Read SCOUT's sessions, one JSON a line."""
    try:
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    except ValueError as error:
        raise TactfulError(f"{path}: is not one JSON a line: {error}; name SCOUT's sessions") from error


def person_of(session_id: str) -> str:
    """Return the person of a session, as in scout/p3.43_main2."""
    return session_id.rpartition("_")[0]


def shares_words(row: Json, then: Json) -> bool:
    """Whether most words of a later row stand in an earlier one."""
    words = set(normalize(then["text"]))
    return len(words) > 1 and len(words & set(normalize(row["text"]))) >= _SAME_SHARE * len(words)


def _words(text: str) -> str:
    """Return a line without its marks in angle brackets."""
    return " ".join(re.sub(r"<[^>]*>", "", text).split())


def meets(unit: LabelledUnit, event: TrueEvent) -> bool:
    """Whether a flag of a unit would be about an event: at its onset, or in the silence that it is."""
    tolerance_s = 2.0
    if abs(ns_to_s(unit.onset_ns - event.onset_ns)) <= tolerance_s:
        return True
    end_ns = unit.onset_ns if unit.offset_ns is None else unit.offset_ns
    within = unit.onset_ns <= event.onset_ns + s_to_ns(tolerance_s) and event.onset_ns <= end_ns + s_to_ns(tolerance_s)
    return unit.kind == "silence" and within
