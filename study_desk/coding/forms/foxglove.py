"""Write labels as an MCAP of foxglove.Event, for Foxglove's timeline."""

import json
from pathlib import Path
from typing import Any

from mcap.writer import CompressionType, Writer

from norm_core.runtime.time import NS_PER_S
from study_desk.coding.forms.sheet import Sheet, in_place_of
from study_desk.log.schema import Label

_TIME = {"type": "object", "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}}}
_PAIR = {"type": "object", "properties": {"key": {"type": "string"}, "value": {"type": "string"}}}
_SCHEMA = {
    "title": "foxglove.Event",
    "type": "object",
    "properties": {"start_time": _TIME, "end_time": _TIME, "metadata": {"type": "array", "items": _PAIR}},
}


def write_events(path: Path, sheet: Sheet) -> None:
    """Write an event for each label, in order of their starts."""
    with in_place_of(path) as part, part.open("wb") as file:
        writer = Writer(file, compression=CompressionType.NONE)
        writer.start(profile="", library="tactful")
        schema_id = writer.register_schema("foxglove.Event", "jsonschema", json.dumps(_SCHEMA).encode())
        channel_id = writer.register_channel("/tactful/events", "json", schema_id)
        for label in sorted(sheet.labels, key=lambda label: label.start_ns):
            event = {"start_time": _time(label.start_ns), "end_time": _time(label.end_ns), "metadata": _metadata(label)}
            data = json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")
            stamp_ns = max(label.start_ns, 0)
            writer.add_message(channel_id, log_time=stamp_ns, publish_time=stamp_ns, data=data)
        writer.finish()


def _time(stamp_ns: int) -> dict[str, int]:
    sec, nanosec = divmod(stamp_ns, NS_PER_S)
    return {"sec": sec, "nsec": nanosec}


def _metadata(label: Label) -> list[dict[str, Any]]:
    values = {
        "event_id": label.event_id,
        "coder": label.coder,
        "polarity": label.polarity.value,
        "attribute": label.attribute.value,
        "severity": label.severity.value if label.severity else "",
        "probability": "" if label.probability is None else f"{label.probability:.3f}",
        "code": label.code,
        "comment": label.comment,
    }
    return [{"key": key, "value": value} for key, value in values.items() if value]
