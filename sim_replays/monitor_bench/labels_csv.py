"""Read the rows of a coder's CSV, and report every fault in it at once."""

import csv
from collections.abc import Sequence
from pathlib import Path

from norm_core.runtime.errors import TactfulError

MOST_SHOWN = 20

Row = dict[str, str]


class LabelFileError(TactfulError, ValueError):
    """A label file cannot be used; the message has one line per fault."""


def read_rows(path: Path, columns: Sequence[str]) -> list[tuple[int, Row]]:
    """Return the stripped cells of these columns, with the number of the line. Raises LabelFileError."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            header = [(name or "").strip() for name in reader.fieldnames or ()]
            if missing := [name for name in columns if name not in header]:
                raise LabelFileError(
                    f"{path}, line 1: needs the columns {', '.join(columns)} and has no {', '.join(missing)}"
                )
            reader.fieldnames = header
            rows = [(reader.line_num, row) for row in reader]
    except OSError as error:
        raise LabelFileError(f"{path}: cannot be read: {error.strerror}; check the path") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise LabelFileError(f"{path}: is no CSV in UTF-8: {error}") from error
    refuse(path, [f"line {line}: has more cells than the header has columns" for line, row in rows if None in row])
    return [(line, {column: (row[column] or "").strip() for column in columns}) for line, row in rows]


def refuse(path: Path, faults: Sequence[str]) -> None:
    """Raise LabelFileError if there are faults, with one line per fault, up to a limit."""
    if faults:
        beyond = [f"{len(faults) - MOST_SHOWN} more"] if len(faults) > MOST_SHOWN else []
        raise LabelFileError("\n".join(f"{path}, {fault}" for fault in (*faults[:MOST_SHOWN], *beyond)))
