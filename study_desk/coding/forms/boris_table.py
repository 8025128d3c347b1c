"""Read the tables that BORIS exports, and the sheet that we write for it: XLSX, TSV or CSV."""

from pathlib import Path
from zipfile import ZipFile

from norm_core.runtime.unpacking import check_archive
from study_desk.coding.forms.boris import HEADER
from study_desk.coding.forms.boris_events import BorisEvent, label_between, labels_of_events
from study_desk.coding.forms.coding_target import CodingTarget, FormPart
from study_desk.coding.forms.sheet import FormError
from study_desk.coding.forms.text_table import TableRow, TextTable, read_text_table, table_of
from study_desk.coding.labels import in_order
from study_desk.log.schema import Label
from study_desk.optional_packages import require_package

_AGGREGATED = {"behavior", "start (s)", "stop (s)"}
_TABULAR = {"behavior", "behavior type", "time"}
_OBSERVATION = "observation id"
_MAX_CELLS = 5_000_000


class BorisTable:
    """BORIS's aggregated events (Start (s), Stop (s)), its tabular events (Time, Behavior type), or our sheet."""

    def __init__(self, path: Path, table: TextTable) -> None:
        """Raises FormError for another table."""
        self._path, self._table, self._columns = path, table, {*table.header}
        if not is_boris_table(table):
            raise FormError(
                f"{path}: lacks the columns {', '.join(sorted({*HEADER} - self._columns))}; exported events of BORIS "
                "(Behavior, Start (s), Stop (s), or Behavior, Behavior type, Time) are also read. "
                f"It has {', '.join(filter(None, table.header)) or 'none'}"
            )

    @property
    def parts(self) -> tuple[FormPart, ...]:
        """List the observations, each with the coder that its independent variable names."""
        coders: dict[str, str] = {}
        for row in self._table.rows:
            name, coder = row.cells.get(_OBSERVATION, ""), row.cells.get("coder", "")
            if coders.setdefault(name, coder) != coder:
                raise FormError(f"{row.place}: observation {name} has two coders; give each their own")
        return tuple(FormPart(name=name, coder=coder) for name, coder in coders.items()) or (FormPart(),)

    def labels(self, target: CodingTarget) -> tuple[Label, ...]:
        """Read the labels of the target's observation, or of the only one."""
        rows = self._chosen(target.part)
        if self._columns >= _AGGREGATED:
            pairs = (
                (_event(row, "start (s)", "comment start"), _event(row, "stop (s)", "comment stop")) for row in rows
            )
            return in_order(label_between(*pair, target) for pair in pairs)
        comment = "comment"
        return in_order(labels_of_events((_event(row, "time", comment) for row in rows), target))

    def _chosen(self, observation: str) -> list[TableRow]:
        rows = list(self._table.rows)
        ids = dict.fromkeys(row.cells.get(_OBSERVATION, "") for row in rows)
        listed = ", ".join(filter(None, ids)) or "none"
        if not observation:
            if len(ids) > 1:
                problem = f"holds {len(ids)} observations, and the log is of one session"
                raise FormError(f"{self._path}: {problem}; give one with --observation: {listed}")
            return rows
        if observation not in ids:
            raise FormError(
                f"{self._path}: has no observation {observation}; it has {listed}. BORIS leaves out an observation "
                "without events: if the coder found nothing, leave FILE out and give --complete"
            )
        return [row for row in rows if row.cells.get(_OBSERVATION, "") == observation]


def is_boris_table(table: TextTable) -> bool:
    """Whether a table has the columns of one that BORIS exports, or of our sheet."""
    return any(columns <= {*table.header} for columns in (_AGGREGATED, _TABULAR, {*HEADER}))


def read_boris_table(path: Path) -> BorisTable:
    """Read an XLSX, TSV or CSV."""
    if path.suffix.lower() != ".xlsx":
        return BorisTable(path, read_text_table(path))
    load = require_package("openpyxl", "openpyxl", "BORIS's XLSX").load_workbook
    check_archive(path)
    with ZipFile(path) as archive:
        if damaged := archive.testzip():
            raise FormError(f"{path}: its part {damaged} is damaged; export it from BORIS again")
    sheet = load(path, read_only=True, data_only=True).worksheets[0]
    sheet.reset_dimensions()  # the file may state any
    rows: list[tuple[int, list[str]]] = []
    cells = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
        if (cells := cells + len(row)) > _MAX_CELLS:
            raise FormError(f"{path}, row {number}: has more than {_MAX_CELLS} cells above; export it from BORIS again")
        if any(cell is not None for cell in row):
            rows.append((number, ["" if cell is None else str(cell) for cell in row]))
    return BorisTable(path, table_of(path, rows, "row"))


def _event(row: TableRow, time: str, comment: str) -> BorisEvent:
    offset = row.cells.get("time offset (s)", "")
    try:
        if offset and row.number("time offset (s)"):
            raise ValueError(f"the observation has a time offset of {offset} s; set it to 0 in BORIS, and export again")
        modifiers = [cell for column, cell in row.cells.items() if column.startswith("modifier")]
        return BorisEvent(
            place=row.place,
            time_s=row.number(time),
            subject=row.cells.get("subject", ""),
            behaviour=row.cells.get("behavior", row.cells.get("code", "")),
            modifiers="|".join(modifiers),
            comment=row.cells.get(comment, ""),
            is_point=row.cells.get("behavior type", "").upper().startswith("POINT"),
        )
    except ValueError as error:
        raise FormError(f"{row.place}: {error}") from error
