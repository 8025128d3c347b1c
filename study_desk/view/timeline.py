"""What a viewer sees of a session, filled record by record from a bag or a running graph."""

import threading
from collections import OrderedDict
from typing import Any

from norm_core.records.decision import Decision
from norm_core.records.flag import Attribute, SocialFlag
from norm_core.records.presence import Presence
from norm_core.records.speech import Utterance
from norm_core.records.status import MonitorStatus
from norm_core.runtime.time import s_to_ns
from study_desk.log.recording import number_views
from study_desk.report.page_items import Item, PresenceTrack, decision_item, flag_item, ms_since, speech_item

MOST_OF_A_KIND = 20_000
MOST_STATES = 30  # of one flag
MOST_NOTES = 50


class SessionTimeline:
    """A session's items by kind, with bounded memory. Each change has a number, so that a viewer asks for the rest.

    Any thread may fill it while others read. The oldest items of a kind make room, and are counted.
    """

    def __init__(self, title: str, start_ns: int, *, most: int = MOST_OF_A_KIND, keep_s: float | None = None) -> None:
        """Begin an empty timeline. `keep_s` forgets what ended earlier than that before the newest record."""
        self.title, self.start_ns = title, start_ns
        self._keep_ms = None if keep_s is None else s_to_ns(keep_s) / 1_000_000
        self._changed = threading.Condition()
        self._version = 0
        self._end = self._read = 0.0
        self._is_complete = self._is_closed = False
        self._notes: list[str] = []
        self._kinds = {name: _Kind(most) for name in ("speech", "presence", "flags", "decisions", "health")}
        self._presence = PresenceTrack(start_ns)
        self._measures: dict[str, dict[tuple[str, float | None], int]] = {}  # by event

    def take(self, record: Any, known_ns: int) -> None:
        """Add a record that became known at a time. Records that no viewer sees only move the end."""
        with self._changed:
            known = ms_since(self.start_ns, known_ns)
            self._read = max(self._read, known)
            self._end = max(self._end, known)
            match record:
                case Utterance() if record.final and record.text:
                    self._put("speech", speech_item(record, self.start_ns))
                case Presence():
                    for stretch in self._presence.take(record):
                        self._put("presence", stretch)
                case SocialFlag():
                    self._take_flag(record, known)
                case Decision():
                    self._put("decisions", decision_item(record, self.start_ns) | {"known": known})
                case MonitorStatus():
                    self._take_status(record, known)
            self._forget()
            self._changed.notify_all()

    def note(self, text: str) -> None:
        """Add a remark for the viewer, such as an input that is missing and the remedy."""
        with self._changed:
            if text not in self._notes and len(self._notes) < MOST_NOTES:
                self._notes.append(text)
                self._version += 1
                self._changed.notify_all()

    def extend_to(self, end_ns: int) -> None:
        """Move the end, such as to the end of a bag that is not read yet."""
        with self._changed:
            self._end = max(self._end, ms_since(self.start_ns, end_ns))

    def complete(self) -> None:
        """Declare that nothing more comes, as at the end of a bag."""
        with self._changed:
            self._is_complete = True
            self._version += 1
            self._changed.notify_all()

    def close(self) -> None:
        """Release all who wait for changes."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def changes(self, since: int = 0, wait_s: float = 0.0) -> Item:
        """Return what changed after a version; wait for a change where there is none yet."""
        with self._changed:
            self._changed.wait_for(lambda: self._version > since or self._is_complete or self._is_closed, wait_s)
            used = {name for item in self._kinds["flags"].items.values() for name in item["attributes"]}
            return {
                "version": self._version,
                "complete": self._is_complete,
                "from": self._from,
                "end": self._end,
                "read": self._read,
                "notes": list(self._notes),
                "dropped": sum(kind.dropped for kind in self._kinds.values()),
                "attributes": [a.value for a in Attribute if a in used] or [a.value for a in Attribute],
                **{name: kind.since(since) for name, kind in self._kinds.items()},
            }

    @property
    def _from(self) -> float:
        return 0.0 if self._keep_ms is None else max(0.0, self._end - self._keep_ms)

    def _take_flag(self, flag: SocialFlag, known: float) -> None:
        views = number_views(self._measures.setdefault(flag.event_id, {}), flag)
        before = self._kinds["flags"].items.get(flag.event_id, {})
        state = {"at": known, "state": flag.state.value, "probability": round(flag.probability, 3)}
        self._put(
            "flags",
            flag_item(flag, self.start_ns, views)
            | {
                "state": flag.state.value,
                "known": before.get("known", known),
                "history": [*before.get("history", ()), state][-MOST_STATES:],
            },
        )

    def _take_status(self, status: MonitorStatus, known: float) -> None:
        """Add a node's health where it changed."""
        said = {
            "node": status.node,
            "state": status.state.value,
            "health": status.health.value,
            "reasons": list(status.reasons),
            "notes": list(status.notes),
        }
        mine = [item for item in reversed(self._kinds["health"].items.values()) if item["node"] == status.node]
        if not mine or any(mine[0][name] != value for name, value in said.items()):
            self._put("health", {"id": f"{status.node} {self._version}", "start": known, "end": known, **said})

    def _put(self, kind: str, item: Item) -> None:
        self._version += 1
        self._end = max(self._end, item["end"])
        self._kinds[kind].put(item, self._version)

    def _forget(self) -> None:
        for kind in self._kinds.values():
            kind.forget(self._from)
        if len(self._measures) > 2 * len(self._kinds["flags"].items) + 10:
            self._measures = {event: known for event, known in self._measures.items() if self._holds(event)}

    def _holds(self, event_id: str) -> bool:
        return event_id in self._kinds["flags"].items


class _Kind:
    """The items of one kind, in the order of their last change."""

    def __init__(self, most: int) -> None:
        self.items: OrderedDict[str, Item] = OrderedDict()
        self._versions: dict[str, int] = {}
        self._most = most
        self.dropped = 0

    def put(self, item: Item, version: int) -> None:
        name = item["id"]
        self.items[name] = item
        self.items.move_to_end(name)
        self._versions[name] = version
        if len(self.items) > self._most:
            self._drop()
            self.dropped += 1

    def since(self, version: int) -> list[Item]:
        """Return copies of what changed after a version, in the order of change."""
        found = []
        for name in reversed(self.items):
            if self._versions[name] <= version:
                break
            found.append(dict(self.items[name]))
        return found[::-1]

    def forget(self, before: float) -> None:
        """Drop what ended earlier, oldest change first."""
        while self.items and next(iter(self.items.values()))["end"] < before:
            self._drop()

    def _drop(self) -> None:
        name, _ = self.items.popitem(last=False)
        del self._versions[name]
