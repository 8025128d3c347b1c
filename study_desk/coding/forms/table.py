"""Tidy tables with one row per label: write CSV, JSONL and Parquet, read CSV and JSONL."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from norm_core.records.flag import Attribute, Polarity, Severity, Verdict
from norm_core.runtime.time import NS_PER_MS, NS_PER_S
from study_desk.coding.forms.sheet import FormError, Sheet, check_session, in_place_of
from study_desk.coding.labels import in_order, one_line
from study_desk.log.schema import Label
from study_desk.optional_packages import require_package

COLUMNS = (
    "session", "coder", "event_id", "polarity", "attribute", "code", "severity", "probability",
    "start_s", "end_s", "duration_s", "start_ns", "end_ns", "comment", "verdict",
)  # fmt: skip


def rows(sheet: Sheet) -> list[dict[str, Any]]:
    """Make one row per label. Seconds count from the origin; nanoseconds are ROS time."""
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
            "start_s": _seconds(label.start_ns - sheet.origin_ns),
            "end_s": _seconds(label.end_ns - sheet.origin_ns),
            "duration_s": _seconds(label.end_ns - label.start_ns),
            "start_ns": label.start_ns,
            "end_ns": label.end_ns,
            "comment": label.comment,
            "verdict": str(sheet.verdicts.get((label.event_id, label.coder), "")),
        }
        for label in sheet.labels
    ]


def write_csv(path: Path, *sheets: Sheet) -> None:
    """Write UTF-8 with a byte order mark, which spreadsheets need for other alphabets."""
    with in_place_of(path) as part, part.open("w", encoding="utf-8-sig", errors="replace", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows({k: _harmless(v) for k, v in row.items()} for sheet in sheets for row in rows(sheet))


def write_jsonl(path: Path, sheet: Sheet) -> None:
    """Write one JSON object a line, and replace the file only once it is complete."""
    with in_place_of(path) as part, part.open("w", encoding="utf-8", errors="replace") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows(sheet))


def write_parquet(path: Path, sheet: Sheet) -> None:
    """Write Parquet. Needs pyarrow, of the extra `study`."""
    arrow, parquet = (
        require_package("pyarrow", "pyarrow", "Parquet"),
        require_package("pyarrow.parquet", "pyarrow", "Parquet"),
    )
    types = dict.fromkeys(COLUMNS, arrow.string())
    types |= dict.fromkeys(("start_ns", "end_ns"), arrow.int64())
    types |= dict.fromkeys(("probability", "start_s", "end_s", "duration_s"), arrow.float64())
    listed = [{key: float(v) if key.endswith("_s") else v for key, v in row.items()} for row in rows(sheet)]
    with in_place_of(path) as part:
        parquet.write_table(arrow.Table.from_pylist(listed, schema=arrow.schema(list(types.items()))), part)


def read_csv(path: Path, coder: str = "", origin_ns: int = 0, session: str = "") -> tuple[Label, ...]:
    """Read labels from a CSV with polarity, attribute and times (start_ns and end_ns, or start_s and end_s)."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            _check_columns(path, tuple(reader.fieldnames or ()))
            rows = ((f"{path}, line {reader.line_num}", _unquoted(row)) for row in reader)
            return in_order(_label(where, row, coder, origin_ns, session) for where, row in rows if _is_label(row))
    except OSError as error:
        raise FormError(f"{path}: cannot be read: {error.strerror}; check the path and its permissions") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise FormError(f"{path}: is no CSV in UTF-8: {error}; save it as such") from error


def read_jsonl(path: Path, coder: str = "", origin_ns: int = 0, session: str = "") -> tuple[Label, ...]:
    """Read labels that write_jsonl wrote."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # splitlines would also split at rare separators
        plain = [(number, json.loads(line)) for number, line in enumerate(lines, 1) if line.strip()]
    except (OSError, ValueError) as error:
        raise FormError(f"{path}: cannot be read as JSON lines: {error}; write one object a line") from error
    for _, row in plain:
        _check_columns(path, tuple(row) if isinstance(row, dict) else ())
    return in_order(
        _label(f"{path}, line {number}", row, coder, origin_ns, session) for number, row in plain if _is_label(row)
    )


def _is_label(row: Mapping[str, Any]) -> bool:
    """Whether a row is a coder's label, and not a flag that a reviewer rejected."""
    return row.get("verdict") != Verdict.REJECT


def _check_columns(path: Path, present: tuple[str, ...]) -> None:
    timed = {"start_ns", "end_ns"} <= set(present) or {"start_s", "end_s"} <= set(present)
    if not ({"polarity", "attribute"} <= set(present) and timed):
        raise FormError(
            f"{path}: needs the columns polarity, attribute, start_s and end_s (or start_ns and end_ns); "
            f"it has {', '.join(present) or 'none'}; rename or add them"
        )


def _label(where: str, row: dict[str, Any], coder: str, origin_ns: int, session: str) -> Label:
    check_session(where, one_line(str(row.get("session") or "")), session)
    try:
        start_ns, end_ns = (_time_ns(row, name, origin_ns) for name in ("start", "end"))
        probability = row.get("probability")
        return Label(
            start_ns=start_ns,
            end_ns=end_ns,
            polarity=Polarity(row["polarity"].strip().lower()),
            attribute=Attribute(row["attribute"].strip().lower().replace(" ", "_")),
            coder=coder or row.get("coder") or "coder",
            code=row.get("code") or "",
            severity=Severity(row["severity"]) if row.get("severity") else None,
            probability=None if probability in (None, "") else float(str(probability)),
            event_id=row.get("event_id") or "",
            comment=row.get("comment") or "",
        )
    except (ValueError, KeyError, AttributeError, OverflowError) as error:
        raise FormError(f"{where}: {error}") from error


def _time_ns(row: dict[str, Any], name: str, origin_ns: int) -> int:
    """Read a time from either column. Refuses a row in which the two disagree after an edit."""
    exact, seconds = row.get(f"{name}_ns"), row.get(f"{name}_s")
    if exact in (None, ""):
        return origin_ns + round(float(row[f"{name}_s"]) * NS_PER_S)
    time_ns = int(exact)
    if seconds not in (None, "") and abs(origin_ns + round(float(seconds) * NS_PER_S) - time_ns) > NS_PER_MS:
        raise ValueError(
            f"{name}_s says {seconds} s and {name}_ns {_seconds(time_ns - origin_ns)} s: "
            f"where the seconds were edited, empty {name}_ns; otherwise empty {name}_s"
        )
    return time_ns


def _seconds(ns: int) -> str:
    sign = "-" if ns < 0 else ""
    whole, rest = divmod(abs(ns), NS_PER_S)
    return f"{sign}{whole}.{rest:09d}"


# A spreadsheet runs a cell with such a first character as a formula. Quoted speech must never run.
_RISKY = ("=", "+", "-", "@", "\t", "\r", "'")


def _harmless(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = value.replace("\0", "")  # readers of CSV refuse the file, or end the cell there
    return f"'{text}" if text.startswith(_RISKY) and not _number(text) else text


def _unquoted(row: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value[1:] if isinstance(value, str) and value[:1] == "'" and value[1:].startswith(_RISKY) else value
        for key, value in row.items()
    }


def _number(value: str) -> bool:
    return value.replace("-", "", 1).replace(".", "", 1).isdigit()
