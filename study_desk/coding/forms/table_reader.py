"""Read tidy tables with one row per label: ours, those of R and of spreadsheets, and JSON lines."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from norm_core.records.flag import Severity, Verdict
from norm_core.runtime.time import NS_PER_MS, NS_PER_S
from study_desk.coding.forms.coding_target import CodingTarget, FormPart
from study_desk.coding.forms.sheet import FormError, check_session, check_text
from study_desk.coding.forms.table import RISKY, seconds
from study_desk.coding.forms.text_table import TableRow, TextTable, read_text, read_text_table, table_of
from study_desk.coding.labels import in_order, one_line
from study_desk.log.schema import Label

# Nanoseconds are exact enough if no digit of a millisecond is cut off.
_EXACT_EXPONENT = 6


class TidyTable:
    """A table with polarity and attribute, or code, and times (start_ns and end_ns, or start_s and end_s).

    A row without an end is an instant.
    """

    def __init__(self, path: Path, table: TextTable) -> None:
        """Raises FormError for a table without the columns."""
        self._path, self._table = path, table
        columns = {*table.header}
        timed = any({f"start_{unit}", f"end_{unit}"} <= columns for unit in ("s", "ns"))
        if not (timed and ({"polarity", "attribute"} <= columns or "code" in columns)):
            raise FormError(
                f"{path}: needs the columns polarity, attribute, start_s and end_s (or start_ns and end_ns); "
                f"it has {', '.join(filter(None, table.header)) or 'none'}; rename or add them"
            )

    @property
    def parts(self) -> tuple[FormPart, ...]:
        """List the sessions that the table names."""
        names = dict.fromkeys(_text(row, "session") for row in self._table.rows) or {"": None}
        return tuple(FormPart(name=name) for name in names)

    def labels(self, target: CodingTarget) -> tuple[Label, ...]:
        """Read the labels of one session. Leaves out flags that a reviewer rejected."""
        rows = (row for row in self._table.rows if _text(row, "verdict") != Verdict.REJECT)
        chosen = [row for row in rows if not target.part or _text(row, "session") == target.part]
        return in_order(_label(row, target) for row in chosen)


def read_csv(path: Path) -> TidyTable:
    """Read a CSV."""
    return TidyTable(path, read_text_table(path))


def read_jsonl(path: Path) -> TidyTable:
    """Read one JSON object a line."""
    header: dict[str, None] = {}
    rows: list[tuple[int, dict[str, str]]] = []
    for line, text in enumerate(read_text(path).split("\n"), 1):  # splitlines would also split at rare separators
        if text.strip():
            try:
                plain = json.loads(text)
                cells = {str(key): "" if value is None else str(value) for key, value in plain.items()}
            except (ValueError, AttributeError, RecursionError) as error:
                raise FormError(f"{path}, line {line}: is no JSON object: {error}; write one a line") from error
            check_text(f"{path}, line {line}", cells.values())
            header |= dict.fromkeys(cells)
            rows.append((line, cells))
    listed = [(line, [cells.get(name, "") for name in header]) for line, cells in rows]
    return TidyTable(path, table_of(path, [(0, list(header)), *listed], "line"))


def _label(row: TableRow, target: CodingTarget) -> Label:
    check_session(row.place, one_line(_text(row, "session")), target.session)
    try:
        severity, probability = _text(row, "severity").lower(), _text(row, "probability")
        fields: dict[str, Any] = {
            "code": _text(row, "code"),
            "severity": Severity(severity) if severity else None,
            "probability": float(row.number("probability")) if probability else None,
            "event_id": _text(row, "event_id"),
            "comment": _text(row, "comment"),
        }
        start_ns = _time_ns(row, "start", target.origin_ns)
        is_instant = not (_text(row, "end_ns").strip() or _text(row, "end_s").strip())
        times_ns = (start_ns, start_ns if is_instant else _time_ns(row, "end", target.origin_ns))
    except (ValueError, OverflowError) as error:
        raise FormError(f"{row.place}: {error}") from error
    kind = f"{_text(row, 'polarity')} {_text(row, 'attribute')}".strip()
    code = target.code_of(row.place, kind or _text(row, "code"))
    return target.label(row.place, times_ns, code, coder=_text(row, "coder"), fields=fields)


def _text(row: TableRow, column: str) -> str:
    cell = row.cells.get(column, "")
    return cell[1:] if cell[:1] == "'" and (cell[1:].startswith(RISKY) or cell == "'NA") else cell


def _time_ns(row: TableRow, name: str, origin_ns: int) -> int:
    """Read a time from either column. Refuses a row in which the two disagree after an edit."""
    exact, rounded = f"{name}_ns", f"{name}_s"
    if not _text(row, exact):
        return _from_seconds(row, rounded, origin_ns)
    stamp, time_ns = row.number(exact), int(row.number(exact))
    if not _text(row, rounded):
        if _is_coarse(stamp):
            raise ValueError(f"{exact} {_text(row, exact)} was rounded by a spreadsheet; give {rounded}")
        return time_ns
    seconds_ns = _from_seconds(row, rounded, origin_ns)
    if _is_coarse(stamp):
        return seconds_ns
    if abs(seconds_ns - time_ns) > NS_PER_MS:
        raise ValueError(
            f"{rounded} says {_text(row, rounded)} s and {exact} {seconds(time_ns - origin_ns)} s: "
            f"where the seconds were edited, empty {exact}; otherwise empty {rounded}"
        )
    return time_ns


def _from_seconds(row: TableRow, column: str, origin_ns: int) -> int:
    return origin_ns + round(row.number(column) * NS_PER_S)


def _is_coarse(stamp: Decimal) -> bool:
    """Whether a spreadsheet cut digits off nanoseconds, such as 1,7E+18."""
    return int(stamp.as_tuple().exponent) > _EXACT_EXPONENT
