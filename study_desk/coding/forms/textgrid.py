"""Praat TextGrids: one interval tier per speaker and per kind of label."""

from pathlib import Path

from praatio.data_classes.interval_tier import IntervalTier
from praatio.data_classes.textgrid import Textgrid

from norm_core.records.speech import Utterance
from study_desk.coding.forms.sheet import Sheet, Span, in_place_of, tiers, to_ms
from study_desk.coding.labels import one_line, to_note


def write_textgrid(path: Path, sheet: Sheet) -> None:
    """Write Praat's long text form, in UTF-8."""
    lanes_by_tier = tiers(sheet)
    end_ms = max(
        [to_ms(sheet.end_ns - sheet.origin_ns), 1, *(s.end_ms for lane in lanes_by_tier.values() for s in lane)]
    )
    grid = Textgrid(0, end_ms / 1000)
    for name, spans in lanes_by_tier.items():
        intervals = [(each.start_ms / 1000, each.end_ms / 1000, _text(each)) for each in spans]
        grid.addTier(IntervalTier(name, intervals, 0, end_ms / 1000), reportingMode="error")
    with in_place_of(path) as part:
        grid.save(str(part), "long_textgrid", includeBlankSpaces=True, reportingMode="error")


def _text(span: Span) -> str:
    if isinstance(span.item, Utterance):
        return one_line(span.item.text)
    return to_note(span.item, instant=span.widened)
