"""Read tables of labels, as spreadsheets and statistics programs save them."""

import csv
import re
from contextlib import suppress
from decimal import Decimal
from io import StringIO
from pathlib import Path

from norm_core.records.flag import Severity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S
from norm_monitor.session_log.labels import RISKY_STARTS, fold_lines, sort_labels
from norm_monitor.session_log.schema import Label
from study_desk.coding.forms.sheet import CodingTarget, FormError, FormPart, check_session

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
# A comma before three digits may part thousands; other commas in a number are decimal ones.
_AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+,(\d{1,2}|\d{4,})|(0|\d{4,}),\d+)", re.ASCII)
_MAX_DIGITS = 40  # characters of a number
_MAX_EXPONENT = 24  # of a number


@record
class TableRow:
    """One row by column, with its file and line for messages."""

    place: str
    cells: dict[str, str]
    has_decimal_comma: bool = False

    def read_number(self, column: str) -> Decimal:
        """Read a number with a decimal point, also in scientific notation. Raises ValueError."""
        plain = self.cells.get(column, "").strip()
        if self.has_decimal_comma and plain.count(",") == 1 and "." not in plain:
            plain = plain.replace(",", ".")
        if _AMBIGUOUS.fullmatch(plain):
            raise ValueError(f"{column} {plain!r} may be two numbers; write it as 1.234 or 1234")
        if len(plain) > _MAX_DIGITS or not _NUMBER.fullmatch(plain):
            raise ValueError(f"{column} {plain!r} is not a number; write it as 12.5")
        value = Decimal(plain)
        if value.adjusted() > _MAX_EXPONENT:
            raise ValueError(f"{column} {plain} is too large; correct it")
        return value

    def read_cell(self, column: str) -> str:
        """Read a cell, without the quote that keeps a spreadsheet from running it."""
        cell = self.cells.get(column, "")
        return cell[1:] if cell[:1] == "'" and (cell[1:].startswith(RISKY_STARTS) or cell == "'NA") else cell


def read_text(path: Path) -> str:
    """Read text in UTF-8, in UTF-16 with a byte order mark, or in the code page of Western European Windows."""
    data = path.read_bytes()
    has_utf16_mark = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    text = None
    # The last encoding that fits wins: cp1252 fits nearly everything, UTF-8 little that is not UTF-8.
    for encoding in ("utf-16",) if has_utf16_mark else ("cp1252", "utf-8-sig"):
        with suppress(UnicodeDecodeError):
            text = data.decode(encoding)
    if text is None:
        raise FormError(f"{path}: is not text; save it as UTF-8")
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise FormError(f"{path}, line {line}: holds a NUL byte; save the file as UTF-8")
    return text


def read_table(path: Path) -> tuple[list[str], list[TableRow]]:
    """Read the header in lower case, and the rows. NA is an empty cell; the header shows the column separator."""
    lines = list(StringIO(read_text(path), newline=""))
    hint = re.fullmatch(r"sep=([,;\t])\s*", lines[0]) if lines else None  # as Excel writes it
    skipped_count = 1 if hint else 0
    first_line = "".join(lines[:1])
    separator = hint.group(1) if hint else max(",;\t", key=re.sub(r'"[^"]*"', "", first_line).count)
    reader = csv.reader(lines[skipped_count:], delimiter=separator, strict=True)
    try:
        numbered_rows = [
            (reader.line_num + skipped_count, ["" if cell.strip() == "NA" else cell for cell in row]) for row in reader
        ]
    except csv.Error as error:
        raise FormError(f"{path}, line {reader.line_num}: is not CSV: {error}; save the file again") from error
    cells_of_all = [cell.strip() for _, row in numbered_rows for cell in row]
    has_decimal_comma = separator != "," or any(map(_DECIMAL_COMMA.fullmatch, cells_of_all))
    header = [cell.strip().lower() for cell in numbered_rows[0][1]] if numbered_rows else []
    rows = []
    for line, cells in numbered_rows[1:]:
        place = f"{path}, line {line}"
        if not any(cells):
            continue
        if any(cells[len(header) :]):
            raise FormError(f"{place}: has {len(cells)} cells, and the header {len(header)}; write one for each column")
        by_column: dict[str, str] = {}
        for name, cell in zip(header, [*cells, *[""] * len(header)], strict=False):
            if by_column.setdefault(name, cell) != cell and name:
                raise FormError(f"{place}: column {name!r} appears twice, with two values; rename one")
        rows.append(TableRow(place=place, cells=by_column, has_decimal_comma=has_decimal_comma))
    return header, rows


class LabelTable:
    """A table with polarity and attribute, or code, and times in seconds. A row without an end is an instant."""

    def __init__(self, path: Path) -> None:
        """Raises FormError for a table without the columns."""
        header, self._rows = read_table(path)
        columns = {*header}
        if not ({"start_s", "end_s"} <= columns and ({"polarity", "attribute"} <= columns or "code" in columns)):
            raise FormError(
                f"{path}: needs the columns polarity and attribute, or code, and start_s and end_s; it has "
                f"{', '.join(filter(None, header)) or 'none'}; rename or add them"
            )

    @property
    def parts(self) -> tuple[FormPart, ...]:
        """The sessions that the table names."""
        names = dict.fromkeys(row.read_cell("session") for row in self._rows) or {"": None}
        return tuple(FormPart(name=name) for name in names)

    def read_labels(self, target: CodingTarget) -> tuple[Label, ...]:
        """Read the labels of one session."""
        chosen = [row for row in self._rows if not target.part or row.read_cell("session") == target.part]
        return sort_labels(_read_label(row, target) for row in chosen)


def _read_label(row: TableRow, target: CodingTarget) -> Label:
    check_session(row.place, fold_lines(row.read_cell("session")), target.session)
    try:
        severity = row.read_cell("severity").lower()
        fields = {
            "code": row.read_cell("code"),
            "severity": Severity(severity) if severity else None,
            "comment": row.read_cell("comment"),
        }
        start_ns, end_ns = (
            target.origin_ns + round(row.read_number(column) * NS_PER_S)
            for column in ("start_s", "end_s" if row.read_cell("end_s").strip() else "start_s")
        )
    except (ValueError, OverflowError) as error:
        raise FormError(f"{row.place}: {error}") from error
    kind = f"{row.read_cell('polarity')} {row.read_cell('attribute')}".strip()
    code = target.require_code(row.place, kind or row.read_cell("code"))
    return target.make_label(row.place, (start_ns, end_ns), code, coder=row.read_cell("coder"), fields=fields)
