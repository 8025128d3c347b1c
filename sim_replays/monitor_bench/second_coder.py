"""Read a second coder's labels of encounters, and measure their agreement with the encounters' own."""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, s_to_ns
from sim_replays.monitor_bench.event_metrics import Alarm, Bounds, EventSession, score_online
from sim_replays.monitor_bench.labels_file import LabelFileError, Row, read_rows, refuse
from sim_replays.scenarios.encounter import Encounter
from sim_replays.scenarios.moment import Moment, parse_moment, resolve
from sim_replays.scenarios.timeline import CLOSING_S, SpeechPiece, lay_out
from sim_replays.scenarios.truth import Truth

COLUMNS = ("encounter", "polarity", "attributes", "onset")
NOTHING = "nothing"  # the polarity of an encounter in which the coder found no event
_SEPARATOR = re.compile(r"[;,]")


@record
class CodedEvent:
    """One event of the second coder."""

    polarity: Polarity
    attributes: tuple[Attribute, ...]
    onset: Moment


Coding = Mapping[str, tuple[CodedEvent, ...]]  # by encounter; empty where the coder found nothing


@record
class CoderScores:
    """The second coder's labels of one polarity against the encounters' own, in percent."""

    f1: float
    f1_interval: Bounds
    precision: float  # of the second coder's labels, the share that match an event
    recall: float  # of the events, the share that the second coder labelled
    events: int
    labels: int
    matched: int
    by_attribute: dict[str, float]  # F1


@record
class CoderAgreement:
    """The agreement over the encounters that the second coder coded."""

    coded: tuple[str, ...]
    not_coded: tuple[str, ...]
    errors: CoderScores
    competences: CoderScores


def read_coding(path: Path, encounters: Iterable[Encounter]) -> Coding:
    """Read a CSV with one row per event. Raises LabelFileError, with every fault."""
    known = {encounter.id: encounter for encounter in encounters}
    events: dict[str, list[CodedEvent]] = {}
    without_event: set[str] = set()
    faults: list[str] = []
    for line, row in read_rows(path, COLUMNS):
        try:
            encounter = known[_one_of(row["encounter"], known, "encounter")]
            coded = events.setdefault(encounter.id, [])
            if row["polarity"] == NOTHING:
                _check_empty(row)
                without_event.add(encounter.id)
            else:
                coded.append(_event(row, encounter, coded))
            if coded and encounter.id in without_event:
                raise ValueError(f"{encounter.id} has events and {NOTHING}; keep one")
        except ValueError as fault:
            faults.append(f"line {line}: {fault}")
    refuse(path, faults)
    if not events:
        raise LabelFileError(f"{path}: has no row; write one per event, or ENCOUNTER,{NOTHING},,")
    return {name: tuple(found) for name, found in events.items()}


def measure_coder(coding: Coding, truths: Iterable[Truth]) -> CoderAgreement:
    """Match the coder's labels with the events of the same encounters, like flags."""
    truths = list(truths)
    sessions = [_session(coding[truth.encounter_id], truth) for truth in truths if truth.encounter_id in coding]
    return CoderAgreement(
        coded=tuple(session.truth.encounter_id for session in sessions),
        not_coded=tuple(truth.encounter_id for truth in truths if truth.encounter_id not in coding),
        errors=_scores(sessions, Polarity.ERROR),
        competences=_scores(sessions, Polarity.COMPETENCE),
    )


def _scores(sessions: Sequence[EventSession], polarity: Polarity) -> CoderScores:
    found = score_online(sessions, polarity)
    return CoderScores(
        f1=found.f1,
        f1_interval=found.f1_interval,
        precision=found.precision,
        recall=found.recall,
        events=found.events,
        labels=found.flags,
        matched=found.flags - found.false,
        by_attribute=found.by_attribute,
    )


def _session(coded: Iterable[CodedEvent], truth: Truth) -> EventSession:
    def seconds(at_ns: int) -> float:
        return (at_ns - truth.start_ns) / NS_PER_S

    turns = {
        turn.turn_id: SpeechPiece(text=turn.text, start_s=seconds(turn.start_ns), end_s=seconds(turn.end_ns))
        for turn in truth.turns
    }
    alarms = []
    for event in coded:
        onset_ns = truth.start_ns + s_to_ns(max(0.0, resolve(event.onset, turns, seconds(truth.end_ns))))
        alarms.append(Alarm(polarity=event.polarity, attributes=event.attributes, onset_ns=onset_ns, known_ns=onset_ns))
    return EventSession(truth=truth, alarms=tuple(alarms))


def _check_empty(row: Row) -> None:
    if row["attributes"] or row["onset"]:
        raise ValueError(f"{NOTHING} takes no attributes and no onset; leave both empty")


def _event(row: Row, encounter: Encounter, others: Collection[CodedEvent]) -> CodedEvent:
    names = [name.strip() for name in _SEPARATOR.split(row["attributes"]) if name.strip()]
    if not names:
        raise ValueError(f"attributes is empty; write one or more of {', '.join(Attribute)}, separated by ;")
    event = CodedEvent(
        polarity=Polarity(_one_of(row["polarity"], [*Polarity, NOTHING], "polarity")),
        attributes=tuple(Attribute(_one_of(name, list(Attribute), "attribute")) for name in dict.fromkeys(names)),
        onset=parse_moment(row["onset"]),
    )
    _check_onset(event.onset, encounter, row["onset"])
    if event in others:
        raise ValueError("the same event stands twice; keep one")
    return event


def _check_onset(onset: Moment, encounter: Encounter, text: str) -> None:
    timeline = lay_out(encounter)
    turns = {spoken.turn_id: spoken for spoken in timeline.spoken}
    if onset.turn and onset.turn not in turns:
        raise ValueError(f"onset {text}: {encounter.id} has no turn {onset.turn}; it has {', '.join(turns)}")
    onset_s = resolve(onset, turns, timeline.length_s)
    # Turn lengths differ by voice, so an onset may reach slightly beyond the edges, as in encounters.
    if not -CLOSING_S <= onset_s <= timeline.length_s + CLOSING_S:
        raise ValueError(f"onset {text} is {onset_s:g} s, outside {encounter.id} of {timeline.length_s:.1f} s")


def _one_of(name: str, known: Collection[str], kind: str) -> str:
    if name in known:
        return name
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted(known))}"
    raise ValueError(f"unknown {kind} {name!r}; {hint}" if name else f"{kind} is empty; {hint}")
