"""Export a log's events as an MCAP of foxglove.Event, for Foxglove's timeline."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from mcap.writer import CompressionType, IndexType, Writer

from norm_core.records.flag import SocialFlag
from norm_core.runtime.atomic_file import atomic_path
from norm_core.runtime.time import NS_PER_S
from study_desk.log.schema import Entry

MODE = 0o640


def create(path: Path) -> BinaryIO:
    """Create a private file at `path`, and replace any existing file."""
    path.unlink(missing_ok=True)  # an existing file would keep its mode
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE), "wb")


TOPIC = "/tactful/events"

_TIME = {"type": "object", "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}}}
_SCHEMA = {
    "title": "foxglove.Event",
    "type": "object",
    "properties": {
        "start_time": _TIME,
        "end_time": _TIME,
        "metadata": {
            "type": "array",
            "items": {"type": "object", "properties": {"key": {"type": "string"}, "value": {"type": "string"}}},
        },
    },
}


class EventTrack:
    """A new MCAP file, unchunked and flushed at each event, so that a crash leaves every complete event readable."""

    def __init__(self, path: Path) -> None:
        """Make the file, readable by its owner alone, and begin it."""
        self._file = create(path)
        self._writer = Writer(
            self._file, compression=CompressionType.NONE, index_types=IndexType.ALL, use_chunking=False
        )
        self._writer.start(profile="", library="tactful")
        schema_id = self._writer.register_schema("foxglove.Event", "jsonschema", json.dumps(_SCHEMA).encode())
        self._channel_id = self._writer.register_channel(TOPIC, "json", schema_id)
        self._sync()

    def write(self, flag: SocialFlag, wall_ns: int) -> None:
        """Write a flag's current state. An open flag ends where it starts."""
        start_ns, end_ns = flag.onset_ns, flag.known_until_ns
        event = {"start_time": _time(start_ns), "end_time": _time(end_ns), "metadata": _metadata(flag)}
        data = json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")
        self._writer.add_message(self._channel_id, log_time=max(flag.decision_ns, 0), publish_time=wall_ns, data=data)
        self._sync()

    def close(self) -> None:
        """Complete the file, and sync it to disk."""
        with self._file:
            self._writer.finish()
            self._sync()

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


def write_track(path: Path, entries: Iterable[Entry]) -> None:
    """Write the whole track of these entries, and replace any file at `path`."""
    with atomic_path(path) as part:
        track = EventTrack(part)
        for entry in entries:
            if isinstance(entry.record, SocialFlag):
                track.write(entry.record, entry.wall_ns)
        track.close()


def _time(stamp_ns: int) -> dict[str, int]:
    sec, nanosec = divmod(stamp_ns, NS_PER_S)
    return {"sec": sec, "nsec": nanosec}


def _metadata(flag: SocialFlag) -> list[dict[str, Any]]:
    values = {
        "event_id": flag.event_id,
        "state": flag.state.value,
        "polarity": flag.polarity.value,
        "attributes": " ".join(attribute.value for attribute in flag.attributes),
        "severity": flag.severity.value,
        "probability": f"{flag.probability:.3f}",
        "cue": flag.cue_id,
        "why": flag.rationale,
        "correction": flag.correction,
    }
    return [{"key": key, "value": value} for key, value in values.items() if value]
