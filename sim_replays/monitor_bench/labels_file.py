"""Read labelled error intervals from a CSV of class, onset and offset, in ERR@HRI's format."""

import csv
import difflib
import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from norm_core.records.record import record
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import s_to_ns

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


COLUMNS = ("class", "onset_s", "offset_s")


class LabelClass(StrEnum):
    """ERR@HRI's classes: the first three from 2024, the last from 2025."""

    ROBOT_MISTAKE = "robot_mistake"
    USER_AWKWARDNESS = "user_awkwardness"
    INTERACTION_RUPTURE = "interaction_rupture"
    USER_CORRECTION = "user_correction"  # the person tries to correct what does not meet their expectation


_SHORT = {
    "rm": LabelClass.ROBOT_MISTAKE,
    "ua": LabelClass.USER_AWKWARDNESS,
    "ir": LabelClass.INTERACTION_RUPTURE,
    "uc": LabelClass.USER_CORRECTION,
}


@record
class Interval:
    """One labelled interval in bag time."""

    label: LabelClass
    onset_ns: int
    offset_ns: int


def read_intervals(path: Path, start_ns: int, end_ns: int) -> tuple[Interval, ...]:
    """Read a bag's labels in order of time. The file counts seconds from the bag's first message.

    Raises LabelFileError, with every fault.
    """
    rows = read_rows(path, COLUMNS)
    faults: list[str] = []
    found: list[tuple[int, Interval]] = []
    for line, row in rows:
        try:
            found.append((line, _interval(row, start_ns, end_ns)))
        except ValueError as fault:
            faults.append(f"line {line}: {fault}")
    faults += _overlaps(found)
    refuse(path, faults)
    return tuple(sorted((one for _, one in found), key=lambda one: (one.onset_ns, one.offset_ns, one.label)))


def _interval(row: Row, start_ns: int, end_ns: int) -> Interval:
    onset_s, offset_s = _seconds(row, "onset_s"), _seconds(row, "offset_s")
    if offset_s <= onset_s:
        raise ValueError(f"offset_s {offset_s:g} is not after onset_s {onset_s:g}")
    length_s = (end_ns - start_ns) / 1e9
    if onset_s >= length_s:
        raise ValueError(f"onset_s {onset_s:g} lies after the bag's end at {length_s:.1f} s: is this its file?")
    return Interval(
        label=_label(row["class"]),
        onset_ns=start_ns + s_to_ns(onset_s),
        offset_ns=min(start_ns + s_to_ns(offset_s), end_ns),
    )


def _seconds(row: Row, column: str) -> float:
    text = row[column]
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{column} is {text!r} and no number of seconds") from None
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{column} is {text}: it counts from the bag's first message, at 0")
    return value


def _label(name: str) -> LabelClass:
    plain = name.lower().replace(" ", "_").replace("-", "_")
    if plain in _SHORT:
        return _SHORT[plain]
    if plain in set(LabelClass):
        return LabelClass(plain)
    near = difflib.get_close_matches(plain, [*LabelClass, *_SHORT], n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    known = ", ".join(f"{long} ({short})" for short, long in _SHORT.items())
    raise ValueError(f"{name!r} is no class; {hint}they are {known}")


def _overlaps(found: list[tuple[int, Interval]]) -> Iterator[str]:
    """Report overlapping labels of one class: two coders' labels, or a slip."""
    newest: dict[LabelClass, tuple[int, Interval]] = {}
    for line, one in sorted(found, key=lambda pair: (pair[1].onset_ns, pair[0])):
        before = newest.get(one.label)
        if before and one.onset_ns < before[1].offset_ns:
            yield f"line {line}: overlaps the {one.label} of line {before[0]}; join them, or use a file a coder"
        if before is None or one.offset_ns > before[1].offset_ns:
            newest[one.label] = (line, one)
