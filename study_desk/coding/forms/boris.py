"""BORIS: write the spreadsheets of its two "from a spreadsheet" imports, and read its exported tables."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from norm_core.records.flag import Attribute, Polarity
from study_desk.coding.forms.sheet import FormError, Sheet, Span, attributes_in, from_ms, in_place_of, lanes, span
from study_desk.coding.labels import from_note, in_order, one_line, to_note
from study_desk.log.schema import Label
from study_desk.optional_packages import require_package

# The columns that BORIS needs in the event sheet, in any order and case.
HEADER = ("time", "subject", "code", "modifier", "comment")
# BORIS reads the ethogram from the first sheet too, so it needs a separate file.
BEHAVIOURS = ("Behavior code", "Behavior type", "Description", "Key", "Behavioral category", "Excluded behaviors")
_PURPOSE = "BORIS's XLSX"


def behaviours_path(path: Path) -> Path:
    """The path of the ethogram, which BORIS needs before the events at `path`."""
    return path.with_name(f"{path.stem}-behaviors.xlsx")


def write_boris(path: Path, sheet: Sheet) -> None:
    """Write two rows per label, as BORIS pairs state events. Needs openpyxl.

    Overlaps of one code use a second subject.
    """
    openpyxl = require_package("openpyxl", "openpyxl", _PURPOSE)
    book, ethogram = openpyxl.Workbook(), openpyxl.Workbook()
    events = book.active
    events.title = "events"
    events.append(list(HEADER))
    by_code: dict[tuple[str, str], list[Span]] = {}
    for label in sheet.labels:
        by_code.setdefault((label.coder, _code(label)), []).append(span(label, sheet.origin_ns))
    listed: list[tuple[float, int, list[str]]] = []
    for (coder, code), spans in by_code.items():
        for number, lane in enumerate(lanes(spans), 1):
            subject = one_line(coder) if number == 1 else f"{one_line(coder)} +{number}"
            for each in lane:
                listed += _rows(each, subject, code)
    for time_s, _, row in sorted(listed, key=lambda entry: entry[:2]):
        events.append([time_s, *(_text(cell) for cell in row)])
    ethogram.active.append(list(BEHAVIOURS))
    for code in sorted({code for _, code in by_code}):
        polarity, _, attribute = code.partition(" ")
        ethogram.active.append([code, "State event", attribute.replace("_", " "), "", polarity, ""])
    for each, file in ((book, path), (ethogram, behaviours_path(path))):
        whole = BytesIO()  # an incomplete ZipFile would raise again when closed
        with in_place_of(file) as part:
            each.save(whole)
            part.write_bytes(whole.getvalue())


def read_boris(path: Path, coder: str = "", origin_ns: int = 0, observation: str = "") -> tuple[Label, ...]:
    """Read labels from this sheet or from BORIS's aggregated export (Start (s), Stop (s)), as XLSX, TSV or CSV.

    Name the observation if the export holds several.
    """
    table = _table(path)
    header = [str(cell or "").strip().lower() for cell in next(table, ())]
    rows = [
        (n, dict(zip(header, row, strict=False)))
        for n, row in enumerate(table, 2)
        if any(c not in (None, "") for c in row)
    ]
    rows = _of_one_observation(path, rows, observation)
    if {"start (s)", "stop (s)", "behavior"} <= set(header):
        return in_order(_aggregated(path, number, row, coder, origin_ns) for number, row in rows)
    if missing := set(HEADER) - set(header):
        raise FormError(
            f"{path}: lacks the columns {', '.join(sorted(missing))}; an aggregated export "
            f"(Behavior, Start (s), Stop (s)) is also read. It has {', '.join(header) or 'none'}"
        )
    if rows and not any(_is_ours(str(row["code"] or "")) for _, row in rows):
        codes = ", ".join(sorted({str(row["code"]) for _, row in rows}))
        raise FormError(
            f'{path}: has no code named as "error engagement" or "competence emotions"; it has {codes}; '
            "rename one in BORIS"
        )
    return in_order(_paired(path, rows, coder, origin_ns))


def _rows(each: Span, subject: str, code: str) -> Iterator[tuple[float, int, list[str]]]:
    label = each.item
    if isinstance(label, Label):
        modifier = label.severity.value if label.severity else ""
        # At equal times a stop must precede the next start, or BORIS pairs them wrongly.
        yield each.start_ms / 1000, 1, [subject, code, modifier, to_note(label, instant=each.widened)]
        yield each.end_ms / 1000, 0, [subject, code, modifier, ""]


def _of_one_observation(
    path: Path, rows: list[tuple[int, dict[str, Any]]], observation: str
) -> list[tuple[int, dict[str, Any]]]:
    """Select the rows of the named observation, or of the only one."""
    ids = dict.fromkeys(str(row.get("observation id") or "") for _, row in rows)
    listed = ", ".join(filter(None, ids)) or "none"
    if not observation:
        if len(ids) > 1:
            problem = f"holds {len(ids)} observations, and the log is of one session"
            raise FormError(f"{path}: {problem}; give one with --observation: {listed}")
        return rows
    if observation not in ids:
        raise FormError(
            f"{path}: has no observation {observation}; it has {listed}. BORIS leaves out an observation without "
            "events: if the coder found nothing, leave FILE out and give --complete"
        )
    return [(number, row) for number, row in rows if str(row["observation id"]) == observation]


def _paired(path: Path, rows: list[tuple[int, dict[str, Any]]], coder: str, origin_ns: int) -> Iterator[Label]:
    begun: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
    for number, row in rows:
        subject, code = str(row["subject"] or ""), str(row["code"] or "")
        if not (_is_ours(code)):
            continue
        first = begun.pop((subject, code), None)
        if first is None:
            begun[subject, code] = (number, row)
        else:
            yield _label(
                path, number, (first[1]["time"], row["time"]), code, subject, first[1]["comment"], coder, origin_ns
            )
    for number, row in begun.values():
        raise FormError(
            f"{path}, row {number}: {row['code']!r} of {row['subject']!r} begins and never stops; add its stop in BORIS"
        )


def _aggregated(path: Path, number: int, row: dict[str, Any], coder: str, origin_ns: int) -> Label:
    times = (row["start (s)"], row["stop (s)"])
    subject = str(row.get("subject") or "")
    return _label(path, number, times, str(row["behavior"]), subject, row.get("comment start"), coder, origin_ns)


def _label(  # noqa: PLR0917
    path: Path, number: int, times: tuple[Any, Any], code: str, subject: str, note: Any, coder: str, origin_ns: int
) -> Label:
    polarity, attribute = attributes_in(code, list(Polarity)), attributes_in(code, list(Attribute))
    if not (polarity and attribute):
        raise FormError(
            f'{path}, row {number}: the code {code!r} holds no polarity and attribute; name it as "error engagement"'
        )
    fields = from_note(str(note or "").removeprefix("'"))
    instant = bool(fields.pop("instant", False))
    try:
        start_ns, end_ns = from_ms(float(times[0]) * 1000, float(times[1]) * 1000, origin_ns, instant=instant)
        return Label(
            start_ns=start_ns,
            end_ns=end_ns,
            polarity=Polarity(polarity),
            attribute=Attribute(attribute),
            coder=coder or subject.split(" +", maxsplit=1)[0] or "coder",
            **fields,  # type: ignore[arg-type]
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise FormError(f"{path}, row {number}: {error}") from error


def _table(path: Path) -> Iterator[tuple[Any, ...]]:
    if path.suffix.lower() in (".tsv", ".csv"):
        import csv  # noqa: PLC0415 only for this form

        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from map(tuple, csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ","))
        return
    load = require_package("openpyxl", "openpyxl", _PURPOSE).load_workbook
    try:
        yield from load(path, read_only=True, data_only=True).worksheets[0].iter_rows(values_only=True)
    except (OSError, KeyError, ValueError) as error:
        raise FormError(f"{path}: is no XLSX: {error}; export it from BORIS again") from error


def _is_ours(code: str) -> bool:
    return bool(attributes_in(code, list(Polarity)) and attributes_in(code, list(Attribute)))


def _code(label: Label) -> str:
    return f"{label.polarity.value} {label.attribute.value}"


def _text(cell: str) -> str:
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@") else cell
