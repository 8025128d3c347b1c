"""Read tables of labels, as spreadsheets and statistics programs save them."""

import csv
import re
from contextlib import suppress
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

from norm_core.records.flag import Severity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_MS, NS_PER_S
from norm_monitor.session_log.labels import RISKY, in_order, one_line, seconds
from norm_monitor.session_log.schema import Label
from study_desk.coding.forms.sheet import CodingTarget, FormError, FormPart, check_session

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
# A comma before three digits may part thousands; other commas in a number are decimal ones.
_AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+,(\d{1,2}|\d{4,})|(0|\d{4,}),\d+)", re.ASCII)
_LONGEST_NUMBER, _LARGEST_EXPONENT = 40, 24


@record
class TableRow:
    """One row by column, with its place for messages."""

    place: str
    cells: dict[str, str]
    decimal_comma: bool = False

    def number(self, column: str) -> Decimal:
        """Read a number with a decimal point, also in scientific notation. Raises ValueError."""
        plain = self.cells.get(column, "").strip()
        if self.decimal_comma and plain.count(",") == 1 and "." not in plain:
            plain = plain.replace(",", ".")
        if _AMBIGUOUS.fullmatch(plain):
            raise ValueError(f"{column} {plain!r} is no number with one meaning; write it as 1.234 or 1234")
        if len(plain) > _LONGEST_NUMBER or not _NUMBER.fullmatch(plain):
            raise ValueError(f"{column} {plain!r} is no number; write it as 12.5")
        value = Decimal(plain)
        if value.adjusted() > _LARGEST_EXPONENT:
            raise ValueError(f"{column} {plain} is too large; correct it")
        return value

    def text(self, column: str) -> str:
        """Return a cell, without the quote that keeps a spreadsheet from running it."""
        cell = self.cells.get(column, "")
        return cell[1:] if cell[:1] == "'" and (cell[1:].startswith(RISKY) or cell == "'NA") else cell


@record
class TextTable:
    """A table with its column names in lower case."""

    header: tuple[str, ...]
    rows: tuple[TableRow, ...]


def read_text(path: Path) -> str:
    """Read text in UTF-8, in UTF-16 with a byte order mark, or in the code page of Western European Windows."""
    data = path.read_bytes()
    text = None  # of the last encoding that fits
    for codec in ("utf-16",) if data.startswith((b"\xff\xfe", b"\xfe\xff")) else ("cp1252", "utf-8-sig"):
        with suppress(UnicodeDecodeError):
            text = data.decode(codec)
    if text is None:
        raise FormError(f"{path}: is no text; save it as UTF-8")
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise FormError(f"{path}, line {line}: holds a NUL byte, so it is no text or is damaged; save it as UTF-8")
    return text


def read_table(path: Path) -> TextTable:
    """Read a table. NA is an empty cell. The column separator is the one that splits the header most."""
    lines = list(StringIO(read_text(path), newline=""))
    stated = re.fullmatch(r"sep=([,;\t])\s*", lines[0]) if lines else None  # Excel's own hint
    skipped = 1 if stated else 0
    head = "".join(lines[:1])
    separator = stated.group(1) if stated else max(",;\t", key=re.sub(r'"[^"]*"', "", head).count)
    reader = csv.reader(lines[skipped:], delimiter=separator, strict=True)
    try:
        numbered = [
            (reader.line_num + skipped, ["" if cell.strip() == "NA" else cell for cell in row]) for row in reader
        ]
    except csv.Error as error:
        raise FormError(f"{path}, line {reader.line_num}: is no CSV: {error}; save it again") from error
    has_comma = separator != "," or any(_DECIMAL_COMMA.fullmatch(cell.strip()) for _, row in numbered for cell in row)
    header = [cell.strip().lower() for cell in numbered[0][1]] if numbered else []
    rows = []
    for line, cells in numbered[1:]:
        place = f"{path}, line {line}"
        if not any(cells):
            continue
        if any(cells[len(header) :]):
            raise FormError(f"{place}: has {len(cells)} cells, and the header {len(header)}; write one for each column")
        by_column: dict[str, str] = {}
        for name, cell in zip(header, [*cells, *[""] * len(header)], strict=False):
            if by_column.setdefault(name, cell) != cell and name:
                raise FormError(f"{place}: column {name!r} stands twice, with two values; rename one")
        rows.append(TableRow(place=place, cells=by_column, decimal_comma=has_comma))
    return TextTable(header=tuple(header), rows=tuple(rows))


# Nanoseconds are exact enough if no digit of a millisecond is cut off.
_EXACT_EXPONENT = 6


class TidyTable:
    """A table with polarity and attribute, or code, and times (start_ns and end_ns, or start_s and end_s).

    A row without an end is an instant.
    """

    def __init__(self, path: Path, table: TextTable) -> None:
        """Raises FormError for a table without the columns."""
        self._rows = table.rows
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
        names = dict.fromkeys(row.text("session") for row in self._rows) or {"": None}
        return tuple(FormPart(name=name) for name in names)

    def labels(self, target: CodingTarget) -> tuple[Label, ...]:
        """Read the labels of one session."""
        chosen = [row for row in self._rows if not target.part or row.text("session") == target.part]
        return in_order(_label(row, target) for row in chosen)


def _label(row: TableRow, target: CodingTarget) -> Label:
    check_session(row.place, one_line(row.text("session")), target.session)
    try:
        severity, probability = row.text("severity").lower(), row.text("probability")
        fields: dict[str, Any] = {
            "code": row.text("code"),
            "severity": Severity(severity) if severity else None,
            "probability": float(row.number("probability")) if probability else None,
            "event_id": row.text("event_id"),
            "comment": row.text("comment"),
        }
        start_ns = _time_ns(row, "start", target.origin_ns)
        is_instant = not (row.text("end_ns").strip() or row.text("end_s").strip())
        times_ns = (start_ns, start_ns if is_instant else _time_ns(row, "end", target.origin_ns))
    except (ValueError, OverflowError) as error:
        raise FormError(f"{row.place}: {error}") from error
    kind = f"{row.text('polarity')} {row.text('attribute')}".strip()
    code = target.code_of(row.place, kind or row.text("code"))
    return target.label(row.place, times_ns, code, coder=row.text("coder"), fields=fields)


def _time_ns(row: TableRow, name: str, origin_ns: int) -> int:
    """Read a time from either column. Refuses a row in which the two disagree after an edit."""
    exact, rounded = f"{name}_ns", f"{name}_s"
    if not row.text(exact):
        return _from_seconds(row, rounded, origin_ns)
    stamp, time_ns = row.number(exact), int(row.number(exact))
    if not row.text(rounded):
        if _is_coarse(stamp):
            raise ValueError(f"{exact} {row.text(exact)} was rounded by a spreadsheet; give {rounded}")
        return time_ns
    seconds_ns = _from_seconds(row, rounded, origin_ns)
    if _is_coarse(stamp):
        return seconds_ns
    if abs(seconds_ns - time_ns) > NS_PER_MS:
        raise ValueError(
            f"{rounded} says {row.text(rounded)} s and {exact} {seconds(time_ns - origin_ns)} s: "
            f"where the seconds were edited, empty {exact}; otherwise empty {rounded}"
        )
    return time_ns


def _from_seconds(row: TableRow, column: str, origin_ns: int) -> int:
    return origin_ns + round(row.number(column) * NS_PER_S)


def _is_coarse(stamp: Decimal) -> bool:
    """Whether a spreadsheet cut digits off nanoseconds, such as 1,7E+18."""
    return int(stamp.as_tuple().exponent) > _EXACT_EXPONENT
