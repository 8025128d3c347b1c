"""Praat TextGrids: an interval tier each, the gaps filled as Praat wants them."""

from pathlib import Path

from norm_core.records.speech import Utterance
from study_desk.coding.forms.sheet import Sheet, Span, in_place_of, tiers, to_ms
from study_desk.coding.labels import one_line, to_note


def write_textgrid(path: Path, sheet: Sheet) -> None:
    """Praat's long text form, in UTF-8."""
    found = tiers(sheet)
    end_ms = max([to_ms(sheet.end_ns - sheet.origin_ns), 1, *(s.end_ms for lane in found.values() for s in lane)])
    lines = [
        'File type = "ooTextFile"', 'Object class = "TextGrid"', "", "xmin = 0", f"xmax = {end_ms / 1000:.3f}",
        "tiers? <exists>" if found else "tiers? <absent>",
    ]  # fmt: skip
    if found:
        lines += [f"size = {len(found)}", "item []:"]
    for number, (name, spans) in enumerate(found.items(), 1):
        filled = _filled(spans, end_ms)
        lines += [
            f"    item [{number}]:", '        class = "IntervalTier"', f"        name = {_quoted(name)}",
            "        xmin = 0", f"        xmax = {end_ms / 1000:.3f}", f"        intervals: size = {len(filled)}",
        ]  # fmt: skip
        for index, (start_ms, stop_ms, text) in enumerate(filled, 1):
            lines += [
                f"        intervals [{index}]:", f"            xmin = {start_ms / 1000:.3f}",
                f"            xmax = {stop_ms / 1000:.3f}", f"            text = {_quoted(text)}",
            ]  # fmt: skip
    with in_place_of(path) as part:
        part.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")


def _filled(spans: list[Span], end_ms: int) -> list[tuple[int, int, str]]:
    filled: list[tuple[int, int, str]] = []
    reached_ms = 0
    for span in spans:
        if span.start_ms > reached_ms:
            filled.append((reached_ms, span.start_ms, ""))
        filled.append((span.start_ms, span.end_ms, _text(span)))
        reached_ms = span.end_ms
    return filled if reached_ms >= end_ms else [*filled, (reached_ms, end_ms, "")]


def _text(span: Span) -> str:
    if isinstance(span.item, Utterance):
        return one_line(span.item.text)
    return to_note(span.item, instant=span.widened)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
