"""The tables of a study: one row per session and coder, and one per event."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S
from norm_core.runtime.wording import to_words
from norm_monitor.session_log.recording import Recording
from norm_monitor.session_log.schema import CONSENSUS, MONITOR, Label
from norm_monitor.session_log.study_file import StudyFile
from norm_monitor.session_log.study_folder import Study
from study_desk.coding.labels import collect_by_coder

Row = dict[str, Any]  # text, numbers or None by column
PLURALS = {Polarity.ERROR: "errors", Polarity.COMPETENCE: "competences"}
# The kinds of coders. All others are human.
_KINDS = {MONITOR: "monitor", CONSENSUS: "consensus"}
_HUMAN = "human"

# Name, unit, description and levels of a column.
_Described = tuple[str, str, str, tuple[str, ...]]
_CODER_COLUMNS: list[_Described] = [
    ("coder", "", "pseudonym of the coder, monitor or consensus", ()),
    ("coder_kind", "", "who or what the coder is", ("monitor", _HUMAN, "consensus")),
    ("analysed", "0 or 1", "1: the session counts by this coder", ()),
]
_EVENT_COLUMNS: list[_Described] = [
    ("event", "", "id of the monitor's event; its rows, one per attribute, are one event", ()),
    ("polarity", "", "error or competence", tuple(map(str, Polarity))),
    ("attribute", "", "the attribute of HSRI", tuple(map(str, Attribute))),
    ("code", "", "the monitor's cue, or the coder's code", ()),
    ("severity", "", "severity, if stated", ()),
    ("probability", "", "the monitor's probability, if stated", ()),
    ("start_s", "s", "onset, from the start of the session", ()),
    ("end_s", "s", "end, from the start of the session", ()),
    ("duration_s", "s", "length; 0: an instant", ()),
]


@record
class Column:
    """A column of a table, for the data dictionary."""

    table: str
    name: str
    unit: str
    description: str
    levels: tuple[str, ...] = ()


@record
class StudyTables:
    """All sessions and events of a study, the columns' meaning, and what was left out."""

    study: str
    conditions: tuple[str, ...]
    sessions: tuple[Row, ...]
    events: tuple[Row, ...]
    columns: tuple[Column, ...]
    remarks: tuple[str, ...]

    @property
    def analysed(self) -> tuple[Row, ...]:
        """The row by which each session counts."""
        return tuple(row for row in self.sessions if row["analysed"])


def tabulate_study(study: Study, coder: str = "") -> StudyTables:
    """Tabulate every session. It counts by `coder`, or else by the consensus, or else by its first human coder."""
    file = study.file
    recordings, remarks = study.recordings()
    remarks += [f"session {name}: {note}" for name, recording in recordings.items() for note in recording.notes]
    clusters = _number_clusters(recordings)
    recorded = sorted(recording.info.condition for recording in recordings.values())
    conditions = tuple(dict.fromkeys([*(name for name in file.conditions if name in recorded), *recorded]))
    session_rows: list[Row] = []
    event_rows: list[Row] = []
    for name in sorted(recordings, key=lambda key: (conditions.index(recordings[key].info.condition), key)):
        recording = recordings[name]
        labels_by_coder = collect_by_coder(recording)
        excluded = file.sessions[name].excluded
        analysed_by = "" if excluded else coder or _choose_coder(study, name, labels_by_coder)
        if excluded:
            remarks.append(f"session {name}: is excluded, so no rate counts it: {excluded}")
        elif analysed_by not in labels_by_coder:
            remarks.append(f"session {name}: no coding by {coder or 'a human'}, so no rate counts it")
        elif analysed_by == CONSENSUS:
            remarks.append(f"session {name}: counts by its consensus")
        common: Row = {
            "study": file.study,
            "session": name,
            "condition": recording.info.condition,
            "participant": " ".join(sorted(p.pseudonym for p in recording.info.participants)),
        }
        group: Row = {"cluster": clusters[name]}
        minutes = (recording.end_ns - recording.start_ns) / NS_PER_S / 60
        for who, labels in labels_by_coder.items():
            by: Row = {"coder": who, "coder_kind": _KINDS.get(who, _HUMAN), "analysed": int(who == analysed_by)}
            session_rows.append(common | group | by | {"minutes": minutes} | _count_labels(labels, file))
            event_rows += [common | by | _make_event_row(label, recording.start_ns) for label in labels]
    event_columns = _make_columns("events", [*_list_common_columns(conditions), *_CODER_COLUMNS, *_EVENT_COLUMNS])
    return StudyTables(
        study=file.study,
        conditions=conditions,
        sessions=tuple(session_rows),
        events=tuple(event_rows),
        columns=(*_list_session_columns(conditions, file), *event_columns),
        remarks=tuple(remarks),
    )


def _choose_coder(study: Study, session: str, labels_by_coder: Mapping[str, object]) -> str:
    """Choose the coder by whom a session counts: the consensus, or its first human coder."""
    humans = [coder for coder in labels_by_coder if coder != MONITOR]
    order = [CONSENSUS, *study.file.coders_of(session), *humans]
    return next((coder for coder in order if coder in labels_by_coder), "")


def _number_clusters(recordings: Mapping[str, Recording]) -> dict[str, int]:
    """Number groups of sessions that share a participant, directly or through other sessions."""
    groups: list[tuple[set[str], set[str]]] = []  # sessions and people
    for name, recording in recordings.items():
        sessions = {name}
        people = {p.pseudonym for p in recording.info.participants}
        for group in [group for group in groups if group[1] & people]:
            groups.remove(group)
            sessions |= group[0]
            people |= group[1]
        groups.append((sessions, people))
    ordered = sorted((sessions for sessions, _ in groups), key=min)
    return {name: number for number, sessions in enumerate(ordered, 1) for name in sessions}


def _count_events(labels: Iterable[Label]) -> int:
    """Count events. The labels of one event of the monitor, one per attribute, count once."""
    labels = tuple(labels)
    return len({label.event_id for label in labels if label.event_id}) + sum(not label.event_id for label in labels)


def _count_labels(labels: Sequence[Label], file: StudyFile) -> Row:
    """Count the labels of one coder by polarity, attribute and code."""
    row: Row = {}
    for polarity, plural in PLURALS.items():
        of_polarity = [label for label in labels if label.polarity is polarity]
        row[plural] = _count_events(of_polarity)
        spans = {(label.event_id, label.start_ns, label.end_ns) for label in of_polarity}
        row[f"{plural}_s"] = sum(end_ns - start_ns for _, start_ns, end_ns in spans) / NS_PER_S
        kinds = Counter(label.attribute for label in of_polarity)
        row |= {f"{polarity.value}_{attribute.value}": kinds[attribute] for attribute in Attribute}
    codes = Counter(label.code for label in labels)
    return row | {f"code_{code.id}": codes[code.id] for code in file.codes}


def _make_event_row(label: Label, session_start_ns: int) -> Row:
    return {
        "event": label.event_id,
        "polarity": label.polarity.value,
        "attribute": label.attribute.value,
        "code": label.code,
        "severity": label.severity.value if label.severity else "",
        "probability": label.probability,
        "start_s": (label.start_ns - session_start_ns) / NS_PER_S,
        "end_s": (label.end_ns - session_start_ns) / NS_PER_S,
        "duration_s": (label.end_ns - label.start_ns) / NS_PER_S,
    }


def _list_common_columns(conditions: Sequence[str]) -> list[_Described]:
    return [
        ("study", "", "name of the study", ()),
        ("session", "", "name of the session", ()),
        ("condition", "", "condition of the session", tuple(conditions)),
        ("participant", "", "pseudonyms of who took part, between spaces", ()),
    ]


def _list_session_columns(conditions: Sequence[str], file: StudyFile) -> list[Column]:
    described = [
        *_list_common_columns(conditions),
        ("cluster", "", "number of the group of sessions that share participants", ()),
        *_CODER_COLUMNS,
        ("minutes", "min", "length of the session", ()),
    ]
    for polarity, plural in PLURALS.items():
        described += [
            (plural, "events", f"{plural}; 0: the coder found none", ()),
            (f"{plural}_s", "s", f"summed length of the {plural}", ()),
        ]
        for attribute in Attribute:
            text = f"{plural} of {to_words(attribute.value)}; an event may have several attributes"
            described.append((f"{polarity.value}_{attribute.value}", "events", text, ()))
    described += [(f"code_{c.id}", "events", f"{c.name}: {c.definition}".rstrip(": "), ()) for c in file.codes]
    return _make_columns("sessions", described)


def _make_columns(table: str, described: Iterable[_Described]) -> list[Column]:
    return [
        Column(table=table, name=name, unit=unit, description=text, levels=levels)
        for name, unit, text, levels in described
    ]
