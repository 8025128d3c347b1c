"""Write tidy tables with one row per label: CSV, JSONL and Parquet."""

import csv
import json
from pathlib import Path
from typing import Any

from norm_core.runtime.time import NS_PER_S
from study_desk.coding.forms.sheet import Sheet, in_place_of
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
            "start_s": seconds(label.start_ns - sheet.origin_ns),
            "end_s": seconds(label.end_ns - sheet.origin_ns),
            "duration_s": seconds(label.end_ns - label.start_ns),
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


def seconds(ns: int) -> str:
    """Write nanoseconds as exact seconds."""
    sign = "-" if ns < 0 else ""
    whole, rest = divmod(abs(ns), NS_PER_S)
    return f"{sign}{whole}.{rest:09d}"


# A spreadsheet runs a cell with such a first character as a formula. Quoted speech must never run.
RISKY = ("=", "+", "-", "@", "\t", "\r", "'")


def _harmless(value: Any) -> Any:
    """Quote what a spreadsheet would run or R would take for a missing value, and leave out NUL bytes."""
    if not isinstance(value, str):
        return value
    value = value.replace("\0", "")
    risky = (value.startswith(RISKY) and not _number(value)) or value.strip() == "NA"
    return f"'{value}" if risky else value


def _number(value: str) -> bool:
    return value.replace("-", "", 1).replace(".", "", 1).isdigit()
