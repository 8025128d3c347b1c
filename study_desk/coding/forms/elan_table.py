"""Read ELAN's tab-delimited export: a row per annotation, or a row per time with a column per tier."""

import csv
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from norm_core.records.record import record
from study_desk.coding.forms.eaf import fields_of_value, is_speech
from study_desk.coding.forms.sheet import CodingTarget, FormError, FormPart, from_ms
from study_desk.coding.labels import in_order
from study_desk.log.schema import Label

_CLOCK = re.compile(r"(\d+):(\d\d):(\d\d)\.(\d{3})", re.ASCII)
_SHAPES = (
    _CLOCK,
    re.compile(r"(\d+)\.(\d{3})", re.ASCII),  # seconds
    re.compile(r"\d+", re.ASCII),  # milliseconds
    re.compile(r"\d+:\d\d:\d\d[:;]\d\d", re.ASCII),  # frames, which say too little
)
_FRAMES = 3
_COLUMN = re.compile(r"(begin|end) time - (hh:mm:ss\.ms|ss\.msec|msec)", re.IGNORECASE)
_EXPORT_AGAIN = "export it in ELAN again (Export As, Tab-delimited Text), with tier names, begin and end times"


@record
class _Annotation:
    place: str
    tier: str
    coder: str
    start_ms: int
    end_ms: int
    value: str


class ElanTable:
    """An export of one EAF. It names neither session nor coder: the file's name does, such as S01_C-1.txt."""

    parts = (FormPart(),)

    def __init__(self, path: Path, text: str) -> None:
        """Raises FormError for another table."""
        self._path = path
        rows = list(_rows(path, text))
        files = {cell for _, row in rows for cell in row if cell.lower().endswith(".eaf")}
        if len({Path(re.sub(r".*[\\/]|#", "", name)).name for name in files}) > 1:
            raise FormError(f"{path}: is an export of several EAFs; export each session into a file of its own")
        rows = [(place, row) for place, row in rows if not row[0].startswith("#")]
        if not rows:
            raise FormError(f"{path}: holds no annotation; if the coder found nothing, leave FILE out, add --complete")
        has_header = any(map(_COLUMN.fullmatch, rows[0][1]))
        annotations = _of_columns(rows) if has_header else (_of_row(place, row) for place, row in rows)
        self._annotations = list(annotations)

    def labels(self, target: CodingTarget) -> tuple[Label, ...]:
        """Read the labels. Ignores tiers that name no code."""
        labels = []
        for annotation in self._annotations:
            code = target.find_code(annotation.tier)
            if code is None:
                continue
            fields = fields_of_value(annotation.place, annotation.value, code, target, is_of_pack=False)
            times_ns = from_ms(annotation.start_ms, annotation.end_ms, target.origin_ns)
            labels.append(target.label(annotation.place, times_ns, code, coder=annotation.coder, fields=fields))
        if not labels and not all(is_speech(annotation.tier) for annotation in self._annotations):
            names = ", ".join(dict.fromkeys(annotation.tier for annotation in self._annotations))
            raise FormError(
                f'{self._path}: has no tier named as "error engagement" or "competence emotions"; it has {names}; '
                "rename one"
            )
        return in_order(labels)


def is_elan_table(text: str) -> bool:
    """Whether a text looks like a table that ELAN exports."""
    first = next((line for line in text.splitlines() if line.strip() and not line.lstrip('"').startswith("#")), "")
    cells = [cell.strip('"') for cell in re.split(r"[\t,]", first)]
    return any(map(_COLUMN.fullmatch, cells)) or (len(cells) > 3 and any(map(_CLOCK.fullmatch, cells[1:])))


def _rows(path: Path, text: str) -> Iterator[tuple[str, list[str]]]:
    """Split lines into cells. ELAN quotes cells in CSV, and none where tabs separate them."""
    has_tabs = "\t" in text
    lines = StringIO(text, newline="")
    reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if has_tabs else csv.reader(lines)
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield f"{path}, line {reader.line_num}", [cells[0].strip('"'), *cells[1:]]
    except csv.Error as error:
        raise FormError(f"{path}, line {reader.line_num}: is no table: {error}; {_EXPORT_AGAIN}") from error


def _of_row(place: str, row: list[str]) -> _Annotation:
    """Read a row: the tier, perhaps its participant, begin, end and duration in each format, and the value."""
    first = next((index for index, cell in enumerate(row[1:3], 1) if _shape(cell) is not None), 0)
    shapes = [_shape(cell) for cell in row[first:]]
    formats = shapes.index(shapes[0], 1) if first and shapes[0] in shapes[1:] else 0
    if not formats or not row[0]:
        raise FormError(f"{place}: names no tier with begin and end; {_EXPORT_AGAIN}")
    chosen = next((index for index in range(formats) if shapes[index] != _FRAMES), None)
    if chosen is None:
        raise FormError(f"{place}: has times in frames alone; {_EXPORT_AGAIN} in hh:mm:ss.ms")
    has_duration = shapes[2 * formats : 3 * formats] == shapes[:formats]
    at_value = first + (3 if has_duration else 2) * formats
    begin, end = row[first + chosen], row[first + formats + chosen]
    value = row[at_value] if at_value < len(row) else ""
    return _annotation(place, row[0], row[1] if first > 1 else "", (begin, end), value)


def _of_columns(rows: list[tuple[str, list[str]]]) -> Iterator[_Annotation]:
    header = rows[0][1]
    times = {match[1].lower(): index for index, name in enumerate(header) if (match := _COLUMN.fullmatch(name))}
    if times.keys() != {"begin", "end"}:
        raise FormError(f"{rows[0][0]}: has no begin or no end; {_EXPORT_AGAIN}")
    last = max(index for index, name in enumerate(header) if " - " in name and _is_time_column(name))
    for place, row in rows[1:]:
        for name, value in zip(header[last + 1 :], row[last + 1 :], strict=False):
            if value and not value.lower().endswith(".eaf"):
                yield _annotation(place, name, "", (row[times["begin"]], row[times["end"]]), value)


def _is_time_column(name: str) -> bool:
    return name.lower().startswith(("begin time - ", "end time - ", "duration - "))


def _annotation(place: str, tier: str, participant: str, times: tuple[str, str], value: str) -> _Annotation:
    start_ms, end_ms = (_milliseconds(place, time) for time in times)
    coder = participant or tier.rpartition(": ")[0]
    return _Annotation(place=place, tier=tier, coder=coder, start_ms=start_ms, end_ms=end_ms, value=value)


def _shape(cell: str) -> int | None:
    return next((index for index, shape in enumerate(_SHAPES) if shape.fullmatch(cell)), None)


def _milliseconds(place: str, time: str) -> int:
    if match := _CLOCK.fullmatch(time):
        hours, minutes, seconds, rest = map(int, match.groups())
        return ((hours * 60 + minutes) * 60 + seconds) * 1000 + rest
    if _shape(time) in (1, 2):
        return int(time.replace(".", ""))  # seconds with three places, or milliseconds
    raise FormError(f"{place}: {time!r} is no time; {_EXPORT_AGAIN}")
