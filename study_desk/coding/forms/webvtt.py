"""WebVTT: show speech and flags under a video."""

from pathlib import Path

from norm_core.records.speech import Utterance
from study_desk.coding.forms.sheet import Sheet, Span, in_place_of, span
from study_desk.coding.labels import one_line
from study_desk.log.schema import Label


def write_webvtt(path: Path, sheet: Sheet) -> None:
    """Write captions in order of time. Overlapping ones are shown together."""
    items: tuple[Label | Utterance, ...] = (*sheet.utterances, *sheet.labels)
    spans = [span(item, sheet.origin_ns) for item in items]
    lines = ["WEBVTT", ""]
    for number, each in enumerate(sorted(spans, key=lambda s: (s.start_ms, s.end_ms)), 1):
        start_ms = max(0, each.start_ms)
        lines += [str(number), f"{_time(start_ms)} --> {_time(max(each.end_ms, start_ms + 1))}", _text(each, sheet), ""]
    with in_place_of(path) as part:
        part.write_text("\n".join(lines), encoding="utf-8", errors="replace")


def _text(each: Span, sheet: Sheet) -> str:
    if isinstance(each.item, Utterance):
        return f"<v {_escaped(sheet.speaker_of(each.item))}>{_escaped(each.item.text) or '…'}"
    label = each.item
    name = label.code or label.attribute.value
    return f"<v {_escaped(label.coder)}>[{label.polarity.value}: {_escaped(name).replace('_', ' ')}]"


def _escaped(text: str) -> str:
    return one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _time(time_ms: int) -> str:
    seconds, rest_ms = divmod(time_ms, 1000)
    return f"{seconds // 3600:02d}:{seconds % 3600 // 60:02d}:{seconds % 60:02d}.{rest_ms:03d}"
