"""Read ELAN's tab-delimited export: a row per annotation, or a row per time with a column per tier."""

import csv
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from norm_core.records.record import record
from norm_monitor.session_log.labels import in_order
from norm_monitor.session_log.schema import Label
from study_desk.coding.forms.eaf import fields_of_value, is_speech, no_tier_of_a_code
from study_desk.coding.forms.sheet import CodingTarget, FormError, FormPart, from_ms
from study_desk.coding.forms.tables import read_text

_CLOCK = re.compile(r"(\d+):(\d\d):(\d\d)\.(\d{3})", re.ASCII)
_SECONDS = re.compile(r"\d+\.\d{3}", re.ASCII)
_MILLISECONDS = re.compile(r"\d+", re.ASCII)
_FRAMES = re.compile(r"\d+:\d\d:\d\d[:;]\d\d", re.ASCII)  # ambiguous without the frame rate
_COLUMN = re.compile(r"(begin time|end time|duration) - .*", re.IGNORECASE)
_READABLE_COLUMN = re.compile(r"(begin|end) time - (hh:mm:ss\.ms|ss\.msec|msec)", re.IGNORECASE)
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

    def __init__(self, path: Path) -> None:
        """Raises FormError if the table is not such an export."""
        self._path = path
        rows = list(_rows(path))
        files = {cell for _, row in rows for cell in row if cell.lower().endswith(".eaf")}
        if len({re.sub(r".*[\\/]|#", "", name) for name in files}) > 1:
            raise FormError(f"{path}: is an export of several EAFs; export each session into a file of its own")
        rows = [(place, row) for place, row in rows if not row[0].startswith("#")]
        if not rows:
            raise FormError(f"{path}: holds no annotation; if the coder found nothing, leave FILE out, add --complete")
        has_header = any(map(_READABLE_COLUMN.fullmatch, rows[0][1]))
        self._annotations = [*(_by_column(rows) if has_header else (_in_row(place, row) for place, row in rows))]

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
            raise no_tier_of_a_code(self._path, dict.fromkeys(annotation.tier for annotation in self._annotations))
        return in_order(labels)


def is_elan_table(path: Path) -> bool:
    """Whether a table looks like one that ELAN exports."""
    lines = (line for line in read_text(path).splitlines() if line.strip() and not line.lstrip('"').startswith("#"))
    cells = [cell.strip('"') for cell in re.split(r"[\t,]", next(lines, ""))]
    return any(map(_READABLE_COLUMN.fullmatch, cells)) or (len(cells) > 3 and any(map(_CLOCK.fullmatch, cells[1:])))


def _rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Split lines into cells. ELAN quotes cells in CSV, and none where tabs separate them."""
    text = read_text(path)
    lines = StringIO(text, newline="")
    reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if "\t" in text else csv.reader(lines)
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield f"{path}, line {reader.line_num}", [cells[0].strip('"'), *cells[1:]]
    except csv.Error as error:
        raise FormError(f"{path}, line {reader.line_num}: is not a table: {error}; {_EXPORT_AGAIN}") from error


def _in_row(place: str, row: list[str]) -> _Annotation:
    """Read a row: the tier, perhaps its participant, begin, end and duration in each format, and the value.

    No header names the columns. The format of the first time comes again at the end, so what lies between are the
    formats.
    """
    begin = next((index for index, cell in enumerate(row[1:3], 1) if _format_of(cell)), 0)
    formats = [_format_of(cell) for cell in row[begin:]]
    count = formats.index(formats[0], 1) if begin and formats[0] in formats[1:] else 0
    if not count or not row[0]:
        raise FormError(f"{place}: names no tier with begin and end; {_EXPORT_AGAIN}")
    readable = next((index for index in range(count) if formats[index] is not _FRAMES), None)
    if readable is None:
        raise FormError(f"{place}: has times in frames alone; {_EXPORT_AGAIN} in hh:mm:ss.ms")
    has_duration = formats[2 * count : 3 * count] == formats[:count]
    value = "".join(row[begin + (3 if has_duration else 2) * count :][:1])
    times = row[begin + readable], row[begin + count + readable]
    return _annotation(place, row[0], row[1] if begin > 1 else "", times, value)


def _by_column(rows: list[tuple[str, list[str]]]) -> Iterator[_Annotation]:
    """Read rows under a header, in which the tiers follow the times."""
    (place, header), *others = rows
    times = {
        match[1].lower(): index for index, name in enumerate(header) if (match := _READABLE_COLUMN.fullmatch(name))
    }
    if times.keys() != {"begin", "end"}:
        raise FormError(f"{place}: has no begin or no end; {_EXPORT_AGAIN}")
    first = 1 + max(index for index, name in enumerate(header) if _COLUMN.fullmatch(name))
    for place, row in others:
        for tier, value in zip(header[first:], row[first:], strict=False):
            if value and not value.lower().endswith(".eaf"):
                yield _annotation(place, tier, "", (row[times["begin"]], row[times["end"]]), value)


def _annotation(place: str, tier: str, participant: str, times: tuple[str, str], value: str) -> _Annotation:
    start_ms, end_ms = (_milliseconds(place, time) for time in times)
    coder = participant or tier.rpartition(": ")[0]
    return _Annotation(place=place, tier=tier, coder=coder, start_ms=start_ms, end_ms=end_ms, value=value)


def _format_of(cell: str) -> re.Pattern[str] | None:
    return next((form for form in (_CLOCK, _SECONDS, _MILLISECONDS, _FRAMES) if form.fullmatch(cell)), None)


def _milliseconds(place: str, time: str) -> int:
    if match := _CLOCK.fullmatch(time):
        hours, minutes, seconds, rest = map(int, match.groups())
        return ((hours * 60 + minutes) * 60 + seconds) * 1000 + rest
    if _format_of(time) in (_SECONDS, _MILLISECONDS):
        return int(time.replace(".", ""))  # seconds have three places
    raise FormError(f"{place}: {time!r} is not a time; {_EXPORT_AGAIN}")
