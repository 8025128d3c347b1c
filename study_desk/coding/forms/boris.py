"""BORIS: write the spreadsheets of its two "from a spreadsheet" imports."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from study_desk.coding.forms.sheet import Sheet, Span, in_place_of, lanes, span
from study_desk.coding.labels import one_line, to_note
from study_desk.log.schema import Label
from study_desk.optional_packages import require_package

# The columns that BORIS needs in the event sheet, in any order and case.
HEADER = ("time", "subject", "code", "modifier", "comment")
# BORIS reads the ethogram from the first sheet too, so it needs a separate file.
BEHAVIOURS = ("Behavior code", "Behavior type", "Description", "Key", "Behavioral category", "Excluded behaviors")


def behaviours_path(path: Path) -> Path:
    """The path of the ethogram, which BORIS needs before the events at `path`."""
    return path.with_name(f"{path.stem}-behaviors.xlsx")


def write_boris(path: Path, sheet: Sheet) -> None:
    """Write two rows per label, as BORIS pairs state events. Needs openpyxl.

    Overlaps of one code use a second subject.
    """
    openpyxl = require_package("openpyxl", "openpyxl", "BORIS's XLSX")
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


def _rows(each: Span, subject: str, code: str) -> Iterator[tuple[float, int, list[str]]]:
    label = each.item
    if isinstance(label, Label):
        modifier = label.severity.value if label.severity else ""
        # At equal times a stop must precede the next start, or BORIS pairs them wrongly.
        yield each.start_ms / 1000, 1, [subject, code, modifier, to_note(label, instant=each.widened)]
        yield each.end_ms / 1000, 0, [subject, code, modifier, ""]


def _code(label: Label) -> str:
    return f"{label.polarity.value} {label.attribute.value}"


def _text(cell: str) -> str:
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@") else cell
