"""Read the tables that spreadsheets and statistics programs save: CSV, semicolons, tabs, decimal commas, NA."""

import csv
import re
from decimal import Decimal
from io import StringIO
from pathlib import Path

from norm_core.records.record import record
from study_desk.coding.forms.sheet import FormError

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
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FormError(f"{path}: cannot be read: {error.strerror}; check the path and its permissions") from error
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
    return table_of(path, rows, "line", decimal_comma=has_comma)


def table_of(path: Path, rows: list[tuple[int, list[str]]], unit: str, *, decimal_comma: bool = False) -> TextTable:
    """Make a table of numbered rows, the first of which names the columns."""
    header = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    found = []
    for count, cells in rows[1:]:
        place = f"{path}, {unit} {count}"
        if not any(cells):
            continue
        if any(cells[len(header) :]):
            raise FormError(f"{place}: has {len(cells)} cells, and the header {len(header)}; write one for each column")
        by_column: dict[str, str] = {}
        for name, cell in zip(header, [*cells, *[""] * len(header)], strict=False):
            if by_column.setdefault(name, cell) != cell and name:
                raise FormError(f"{place}: column {name!r} stands twice, with two values; rename one")
        found.append(TableRow(place=place, cells=by_column, decimal_comma=decimal_comma))
    return TextTable(header=tuple(header), rows=tuple(found))


def _rows(path: Path, lines: list[str], separator: str) -> list[tuple[int, list[str]]]:
    reader = csv.reader(lines, delimiter=separator, strict=True)
    rows = []
    try:
        for row in reader:
            rows.append((reader.line_num, row))
    except csv.Error as error:
        raise FormError(f"{path}, line {reader.line_num}: is no CSV: {error}; save it again") from error
    return rows
