"""Read tables of labels, as spreadsheets and statistics programs save them."""

import csv
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from decimal import Decimal
from io import StringIO
from pathlib import Path

from norm_core.records.flag import Severity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S
from norm_monitor.session_log.labels import RISKY, in_order, one_line
from norm_monitor.session_log.schema import Label
from study_desk.coding.forms.sheet import CodingTarget, FormError, FormPart, check_session

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
# A comma before three digits may part thousands; other commas in a number are decimal ones.
_AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+,(\d{1,2}|\d{4,})|(0|\d{4,}),\d+)", re.ASCII)
_MAX_CHARACTERS, _MAX_EXPONENT = 40, 24  # of a number


@record
class TableRow:
    """One row by column, with its file and line for messages."""

    place: str
    cells: dict[str, str]
    decimal_comma: bool = False

    def number(self, column: str) -> Decimal:
        """Read a number with a decimal point, also in scientific notation. Raises ValueError."""
        plain = self.cells.get(column, "").strip()
        if self.decimal_comma and plain.count(",") == 1 and "." not in plain:
            plain = plain.replace(",", ".")
        if _AMBIGUOUS.fullmatch(plain):
            raise ValueError(f"{column} {plain!r} may be two numbers; write it as 1.234 or 1234")
        if len(plain) > _MAX_CHARACTERS or not _NUMBER.fullmatch(plain):
            raise ValueError(f"{column} {plain!r} is not a number; write it as 12.5")
        value = Decimal(plain)
        if value.adjusted() > _MAX_EXPONENT:
            raise ValueError(f"{column} {plain} is too large; correct it")
        return value

    def text(self, column: str) -> str:
        """Return a cell, without the quote that keeps a spreadsheet from running it."""
        cell = self.cells.get(column, "")
        return cell[1:] if cell[:1] == "'" and (cell[1:].startswith(RISKY) or cell == "'NA") else cell


def read_text(path: Path) -> str:
    """Read text in UTF-8, in UTF-16 with a byte order mark, or in the code page of Western European Windows."""
    data = path.read_bytes()
    text = None  # of the last encoding that fits
    for codec in ("utf-16",) if data.startswith((b"\xff\xfe", b"\xfe\xff")) else ("cp1252", "utf-8-sig"):
        with suppress(UnicodeDecodeError):
            text = data.decode(codec)
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
    skipped = 1 if hint else 0
    head = "".join(lines[:1])
    separator = hint.group(1) if hint else max(",;\t", key=re.sub(r'"[^"]*"', "", head).count)
    reader = csv.reader(lines[skipped:], delimiter=separator, strict=True)
    try:
        numbered = [
            (reader.line_num + skipped, ["" if cell.strip() == "NA" else cell for cell in row]) for row in reader
        ]
    except csv.Error as error:
        raise FormError(f"{path}, line {reader.line_num}: is not CSV: {error}; save the file again") from error
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
                raise FormError(f"{place}: column {name!r} appears twice, with two values; rename one")
        rows.append(TableRow(place=place, cells=by_column, decimal_comma=has_comma))
    return header, rows


class LabelTable:
    """A table with polarity and attribute, or code, and times in seconds. A row without an end is an instant."""

    def __init__(self, path: Path, header: Collection[str], rows: Sequence[TableRow]) -> None:
        """Raises FormError for a table without the columns."""
        self._rows = rows
        columns = {*header}
        if not ({"start_s", "end_s"} <= columns and ({"polarity", "attribute"} <= columns or "code" in columns)):
            raise FormError(
                f"{path}: needs the columns polarity and attribute, or code, and start_s and end_s; it has "
                f"{', '.join(filter(None, header)) or 'none'}; rename or add them"
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
        severity = row.text("severity").lower()
        fields = {
            "code": row.text("code"),
            "severity": Severity(severity) if severity else None,
            "comment": row.text("comment"),
        }
        start_ns, end_ns = (
            target.origin_ns + round(row.number(column) * NS_PER_S)
            for column in ("start_s", "end_s" if row.text("end_s").strip() else "start_s")
        )
    except (ValueError, OverflowError) as error:
        raise FormError(f"{row.place}: {error}") from error
    kind = f"{row.text('polarity')} {row.text('attribute')}".strip()
    code = target.code_of(row.place, kind or row.text("code"))
    return target.label(row.place, (start_ns, end_ns), code, coder=row.text("coder"), fields=fields)
