"""The coded stretches of SCOUT as labelled units: what the monitor measures of them, with what coders marked."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from calibration.unit_examples import LabelledRecords, LabelledUnit, labelled_units
from norm_core.files.data_files import shipped_file
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_core.runtime.time import NS_PER_S, ns_to_s, s_to_ns
from norm_core.streams.watermarks import UTTERANCES
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.context.meaning import TextMatcher
from norm_monitor.context.spoken_words import estimate_duration_ns
from norm_monitor.encounters.encounter import Basis
from norm_monitor.encounters.library import TrueEvent, Truth
from norm_monitor.senses.speech.silence_marks import make_script_marks
from norm_monitor.windows.cutter import Entry

CODINGS = shipped_file("calibration", "real_robots") / "scout_codings.jsonl"
# How much talk before a stretch the monitor hears, and how long before the first words it starts.
_LEAD_S, _START_S = 60.0, 5.0
_MARK_NS = NS_PER_S // 2
_TOPIC = "talk"

Json = dict[str, Any]


@record
class CodedStretch:
    """A coded stretch of one person's talk with the robot."""

    person: str
    truth: Truth
    units: tuple[LabelledUnit, ...]
    hours: float


def coded_stretches(sessions: Path, meaning: TextMatcher, table: ThresholdTable) -> Iterator[CodedStretch]:
    """Run the monitor on each stretch of the sessions' file, and label the units that it measured."""
    by_id = {session["id"]: session for session in map(json.loads, sessions.read_text("utf-8").splitlines())}
    for talk, line in enumerate(CODINGS.read_text("utf-8").splitlines()):
        stretch = json.loads(line)
        labelled = _labelled(stretch, by_id[stretch["session"]])
        from_ns = s_to_ns(_LEAD_S)
        yield CodedStretch(
            person=stretch["session"].rpartition("_")[0],
            truth=labelled.truth,
            units=tuple(u for u in labelled_units(talk, labelled, meaning, table) if u.onset_ns >= from_ns),
            hours=(stretch["end_s"] - stretch["start_s"]) / 3600,
        )


def _labelled(stretch: Json, session: Json) -> LabelledRecords:
    from_s, end_s = stretch["start_s"] - _LEAD_S, stretch["end_s"]
    spoken = [turn for turn in session["turns"] if turn["at_s"] is not None and from_s <= turn["at_s"] < end_s]
    turns = [(turn, text) for turn in sorted(spoken, key=_at_s) if (text := _words(turn["text"]))]
    entries: list[tuple[int, Entry]] = []
    heard: list[Utterance] = []
    onset_by_row: dict[object, int] = {}
    starts_ns = [s_to_ns(turn["at_s"] - from_s + _START_S) for turn, _ in turns]
    for index, (turn, text) in enumerate(turns):
        at_ns, duration_ns = starts_ns[index], estimate_duration_ns(text)
        onset_by_row[turn["id"]] = at_ns
        if turn["by"] == "robot":
            next_ns = starts_ns[index + 1] if index + 1 < len(starts_ns) else at_ns + duration_ns
            stop_ns = max(at_ns + 1, min(at_ns + duration_ns, next_ns))
            edges = (at_ns, SpeechEdge.START), (stop_ns, SpeechEdge.STOP)
            entries += [
                (edge_ns, RobotSpeech(stamp_ns=edge_ns, speech_id=f"r{index}", state=edge, text=text))
                for edge_ns, edge in edges
            ]
        else:  # a person's line is stamped as it ended
            start_ns = min(at_ns, max(at_ns - duration_ns, heard[-1].end_ns if heard else 0))
            utterance = Utterance(
                stamp_ns=start_ns,
                utterance_id=f"u{index}",
                speaker=Speaker.USER,
                speaker_id="person",
                text=text,
                start_ns=start_ns,
                end_ns=at_ns,
                source_topic=_TOPIC,
            )
            heard.append(utterance)
            entries.append((at_ns, utterance))
    until_ns = s_to_ns(end_s - from_s + _START_S)
    entries += make_script_marks(heard, 0, until_ns, _MARK_NS, _TOPIC)
    entries.sort(key=lambda entry: (entry[0], not isinstance(entry[1], RobotSpeech)))
    events = [
        TrueEvent(
            polarity=Polarity(mark["polarity"]),
            attributes=tuple(map(Attribute, mark["attributes"])),
            onset_ns=onset_by_row[mark["row"]],
            offset_ns=onset_by_row[mark["row"]],
            basis=Basis.TIMING if mark["silence"] else Basis.WORDING,
            evidence=(),
            rationale=mark["why"],
        )
        for mark in stretch["marks"]
        if mark["row"] in onset_by_row
    ]
    truth = Truth(
        encounter_id=stretch["session"],
        language="en",
        seed=0,
        start_ns=0,
        end_ns=until_ns,
        turns=(),
        events=tuple(sorted(events, key=lambda event: event.onset_ns)),
    )
    return LabelledRecords(given=tuple(entries), sources=(UTTERANCES,), truth=truth)


def _at_s(turn: Json) -> float:
    return float(turn["at_s"])


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
