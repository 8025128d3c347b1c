"""Write and read tables of labels as CSV, also as spreadsheets and statistics programs save them."""

import csv
import re
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
_WIDE = (
    (re.compile(rb"\xff\xfe|\xfe\xff"), "utf-16"),
    (re.compile(rb"[^\0]\0[^\0]\0"), "utf-16-le"),
    (re.compile(rb"\0[^\0]\0[^\0]"), "utf-16-be"),
)
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


@record
class TextTable:
    """A table with its column names in lower case."""

    header: tuple[str, ...]
    rows: tuple[TableRow, ...]


def read_text(path: Path) -> str:
    """Read text in UTF-8, in UTF-16, or in the code page of Western European Windows.

    UTF-16 has a byte order mark, or begins with two characters of ASCII, as every form does.
    """
    data = path.read_bytes()
    wide = next((codec for pattern, codec in _WIDE if pattern.match(data)), "")
    try:
        try:
            text = data.decode(wide or "utf-8-sig")
        except UnicodeDecodeError:
            if wide:
                raise
            text = data.decode("cp1252")
    except UnicodeDecodeError as error:
        raise FormError(f"{path}: is no text: {error.reason}; save it as UTF-8") from error
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise FormError(f"{path}, line {line}: holds a NUL byte, so it is no text or is damaged; save it as UTF-8")
    return text


def read_text_table(path: Path) -> TextTable:
    """Read a table. NA is an empty cell. The column separator is the one that splits the header most."""
    lines = list(StringIO(read_text(path), newline=""))
    first = 1
    stated = re.fullmatch(r"sep=([,;\t])\s*", lines[0]) if lines else None
    if stated:  # Excel's own hint
        lines, first = lines[1:], 2
    separator = stated.group(1) if stated else max(",;\t", key=re.sub(r'"[^"]*"', "", "".join(lines[:1])).count)
    rows = [
        (line + first - 1, ["" if cell.strip() == "NA" else cell for cell in row])
        for line, row in _rows(path, lines, separator)
    ]
    has_comma = separator != "," or any(_DECIMAL_COMMA.fullmatch(cell.strip()) for _, row in rows for cell in row)
    return table_of(path, rows, decimal_comma=has_comma)


def table_of(path: Path, rows: list[tuple[int, list[str]]], *, decimal_comma: bool = False) -> TextTable:
    """Make a table of numbered rows, the first of which names the columns."""
    header = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    table_rows = []
    for count, cells in rows[1:]:
        place = f"{path}, line {count}"
        if not any(cells):
            continue
        if any(cells[len(header) :]):
            raise FormError(f"{place}: has {len(cells)} cells, and the header {len(header)}; write one for each column")
        by_column: dict[str, str] = {}
        for name, cell in zip(header, [*cells, *[""] * len(header)], strict=False):
            if by_column.setdefault(name, cell) != cell and name:
                raise FormError(f"{place}: column {name!r} stands twice, with two values; rename one")
        table_rows.append(TableRow(place=place, cells=by_column, decimal_comma=decimal_comma))
    return TextTable(header=tuple(header), rows=tuple(table_rows))


def _rows(path: Path, lines: list[str], separator: str) -> list[tuple[int, list[str]]]:
    reader = csv.reader(lines, delimiter=separator, strict=True)
    rows = []
    try:
        for row in reader:
            rows.append((reader.line_num, row))
    except csv.Error as error:
        raise FormError(f"{path}, line {reader.line_num}: is no CSV: {error}; save it again") from error
    return rows


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
        """Read the labels of one session."""
        chosen = [row for row in self._table.rows if not target.part or _text(row, "session") == target.part]
        return in_order(_label(row, target) for row in chosen)


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
