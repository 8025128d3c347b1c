"""The monitor's labels of a session, and the table in which labels are given to others."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from norm_core.files.atomic_file import private_path
from norm_core.records.flag import SocialFlag
from norm_core.records.record import record
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.time import NS_PER_S
from norm_monitor.session_log.recording import Recording
from norm_monitor.session_log.schema import Label

COLUMNS = (
    "session", "coder", "event_id", "polarity", "attribute", "code", "severity", "probability",
    "start_s", "end_s", "duration_s", "start_ns", "end_ns", "comment",
)  # fmt: skip
# A spreadsheet runs a cell that starts so as a formula. Quoted speech must never run.
RISKY_STARTS = ("=", "+", "-", "@", "\t", "\r", "'")


def make_monitor_labels(recording: Recording) -> tuple[Label, ...]:
    """Make the labels of the monitor."""
    return tuple(label for flag in recording.flags for label in make_flag_labels(flag))


def make_flag_labels(flag: SocialFlag) -> list[Label]:
    """Make the labels of a flag, one for each attribute. An open flag ends at its last decision."""
    end_ns = max(flag.onset_ns, flag.decision_ns) if flag.offset_ns is None else flag.offset_ns
    still_open = " (still open when the recording ended)" if flag.offset_ns is None else ""
    return [
        Label(
            start_ns=flag.onset_ns,
            end_ns=end_ns,
            polarity=flag.polarity,
            attribute=attribute,
            code=flag.cue_id,
            severity=flag.severity,
            probability=flag.probability,
            event_id=flag.event_id,
            comment=flag.rationale + still_open,
        )
        for attribute in flag.attributes
    ]


def sort_labels(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Sort labels by start, end, polarity and attribute."""
    return tuple(sorted(labels, key=lambda label: (label.start_ns, label.end_ns, label.polarity, label.attribute)))


def fold_lines(text: str) -> str:
    """Fold a text into a single line, without characters that XML and spreadsheets refuse."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


@record
class Sheet:
    """A table of labels and speech, whose times count from `origin_ns`."""

    origin_ns: int
    end_ns: int
    labels: tuple[Label, ...] = ()
    utterances: tuple[Utterance, ...] = ()
    session: str = ""
    speakers: Mapping[str, str] = field(default_factory=dict)  # pseudonyms by person id, if several people spoke

    def speaker_of(self, utterance: Utterance) -> str:
        """Return the speaker's pseudonym if several people spoke, or else the kind of speaker."""
        return self.speakers.get(
            utterance.speaker_id if utterance.speaker is not Speaker.ROBOT else "", utterance.speaker.value
        )


def _make_rows(sheet: Sheet) -> list[dict[str, Any]]:
    """Make one row for each label. Seconds count from the origin; nanoseconds are ROS time."""
    return [
        {
            "session": sheet.session,
            "coder": label.coder,
            "event_id": label.event_id,
            "polarity": label.polarity.value,
            "attribute": label.attribute.value,
            "code": label.code,
            "severity": label.severity.value if label.severity else "",
            "probability": label.probability,
            "start_s": format_seconds(label.start_ns - sheet.origin_ns),
            "end_s": format_seconds(label.end_ns - sheet.origin_ns),
            "duration_s": format_seconds(label.end_ns - label.start_ns),
            "start_ns": label.start_ns,
            "end_ns": label.end_ns,
            "comment": label.comment,
        }
        for label in sheet.labels
    ]


def write_csv(path: Path, *sheets: Sheet) -> None:
    """Write the labels of sheets as one CSV file."""
    write_rows(path, COLUMNS, (row for sheet in sheets for row in _make_rows(sheet)))


def write_rows(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a CSV file, with a byte order mark, which spreadsheets need for other alphabets."""
    with private_path(path) as part, part.open("w", encoding="utf-8-sig", errors="replace", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows({name: _escape(value) for name, value in row.items()} for row in rows)


def format_seconds(ns: int) -> str:
    """Write nanoseconds as exact seconds."""
    sign = "-" if ns < 0 else ""
    whole, rest = divmod(abs(ns), NS_PER_S)
    return f"{sign}{whole}.{rest:09d}"


def _escape(value: Any) -> Any:
    """Quote a text that a spreadsheet would run or that R reads as missing, and leave out NUL bytes."""
    if not isinstance(value, str):
        return value
    value = value.replace("\0", "")
    is_number = value.replace("-", "", 1).replace(".", "", 1).isdigit()
    is_risky = (value.startswith(RISKY_STARTS) and not is_number) or value.strip() == "NA"
    return f"'{value}" if is_risky else value
