"""The items of a session as a viewer sees them, filled record by record from a bag or a running graph."""

import re
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from norm_core.records.decision import Decision
from norm_core.records.flag import Attribute, SocialFlag
from norm_core.records.presence import Presence
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_core.records.status import MonitorStatus
from norm_core.runtime.time import s_to_ns
from norm_monitor.view.page_items import (
    Item,
    PresenceTrack,
    VoiceNumbers,
    make_decision_item,
    make_flag_item,
    make_speech_item,
    ms_since,
)

# The latest turns of the robot, which its heard words may repeat.
MAX_TURNS = 8
MAX_NODES = 100
# An unchanged health is stated again after this time, so that it is not forgotten while the node lives.
_RESTATE_MS = 60_000
MAX_OF_A_KIND = 20_000
# The states of one flag that its item shows.
MAX_STATES = 30
MAX_NOTES = 50
# A change that is no news, such as presence, waits this long for news.
MAX_CALM_S = 1.0
# How far ahead of a running graph's time an item may end, such as the estimated end of the robot's words.
MAX_AHEAD_MS = 60_000
KINDS = ("speech", "presence", "flags", "decisions", "health", "outages", "reviews")


class ItemStore:
    """Items by id, with the version of each item's last change."""

    def __init__(self, max_count: int) -> None:
        self.items: OrderedDict[str, Item] = OrderedDict()
        self.dropped = 0
        self._versions: dict[str, int] = {}
        self._max_count = max_count

    def put(self, item: Item, version: int) -> None:
        """Add or replace an item. The item that changed longest ago makes room."""
        name = item["id"]
        self.items[name] = item
        self.items.move_to_end(name)
        self._versions[name] = version
        if len(self.items) > self._max_count:
            self._drop()
            self.dropped += 1

    def since(self, version: int) -> list[Item]:
        """Return copies of the items that changed after a version, in the order of change."""
        changed = []
        for name in reversed(self.items):
            if self._versions[name] <= version:
                break
            changed.append(dict(self.items[name]))
        return changed[::-1]

    def forget(self, before: float) -> None:
        """Drop the items that ended before a time, oldest change first."""
        while self.items and next(iter(self.items.values()))["end"] < before:
            self._drop()

    def _drop(self) -> None:
        name, _ = self.items.popitem(last=False)
        del self._versions[name]


class SpeechTrack:
    """The turns of a session, in which the robot's stated words replace the heard ones."""

    def __init__(self) -> None:
        self._turns: deque[Item] = deque(maxlen=MAX_TURNS)
        self._voices = VoiceNumbers()

    def take_utterance(self, utterance: Utterance, start_ns: int) -> Item | None:
        """Return the item of an utterance, or None if the robot itself stated these words."""
        item = make_speech_item(utterance, start_ns, self._voices)
        robot_turns = [turn for turn in self._turns if turn["start"] < item["end"] and turn["end"] > item["start"]]
        return None if utterance.speaker is Speaker.ROBOT and any(turn["text"] for turn in robot_turns) else item

    def take_robot_speech(self, speech: RobotSpeech, start_ns: int) -> Item | None:
        """Return the turn of the robot that starts or stops; None while its words are unknown."""
        at_ms = ms_since(start_ns, speech.stamp_ns)
        if speech.state is SpeechEdge.START:
            turn: Item = {"id": speech.speech_id or f"robot {at_ms}", "who": "robot", "start": at_ms, "end": at_ms}
            turn |= {"text": speech.text, "locale": speech.locale, "is_open": True}
            self._turns.append(turn)
        elif self._turns:
            turn = next((turn for turn in self._turns if turn["id"] == speech.speech_id), self._turns[-1])
            turn |= {"end": max(at_ms, turn["start"]), "text": turn["text"] or speech.text, "is_open": False}
        else:
            return None
        return dict(turn) if turn["text"] else None


class HealthTrack:
    """The heartbeats of the nodes, merged into stretches of one health."""

    def __init__(self) -> None:
        self._latest: dict[str, Item] = {}  # by node
        self._count = 0

    def take(self, status: MonitorStatus, known_ms: float) -> tuple[Item, bool] | None:
        """Return the stretch that a heartbeat changed, and whether it is new. Other digits begin no stretch."""
        stretch = {
            "node": status.node,
            "state": status.state.value,
            "health": status.health.value,
            "reasons": list(status.reasons),
            "notes": list(status.notes),
        }
        before = self._latest.get(status.node)
        if before is None and len(self._latest) >= MAX_NODES:
            return None
        if before and _mask_digits(before) == _mask_digits(stretch):
            if before["end"] + _RESTATE_MS > known_ms and all(before[name] == value for name, value in stretch.items()):
                return None
            item, is_new = {**before, **stretch, "end": known_ms}, False
        else:
            self._count += 1
            item, is_new = {"id": f"health-{self._count}", "start": known_ms, "end": known_ms, **stretch}, True
        self._latest[status.node] = item
        return item, is_new


def _mask_digits(stretch: Item) -> list[str]:
    texts = [stretch["state"], stretch["health"], *stretch["reasons"], *stretch["notes"]]
    return [re.sub(r"\d+", "0", text) for text in texts]


class SessionTimeline:
    """A session's items by kind, with bounded memory. Each change has a number, so that a viewer asks for the rest.

    Any thread may fill it while others read. The oldest items of a kind make room, and are counted.
    """

    def __init__(
        self, title: str, start_ns: int, *, most: int = MAX_OF_A_KIND, keep_s: float | None = None, past_s: float = 0
    ) -> None:
        """Begin an empty timeline. With `keep_s`, items that ended earlier before the newest record are dropped.

        `past_s` leaves room for items from before the start.
        """
        self.title = title
        self.start_ns = start_ns - s_to_ns(past_s)
        self._keep_ms = None if keep_s is None else s_to_ns(keep_s) / 1_000_000
        self._changed = threading.Condition()
        self._version = 0  # of the last change
        self._news_version = 0  # of the last change that is sent at once
        self._begin = self._end = ms_since(self.start_ns, start_ns)
        self._read = 0.0
        self._is_complete = False
        self._is_closed = False
        self._notes: list[str] = []
        self._state: dict[str, Any] = {}
        self._kinds = {name: ItemStore(most) for name in KINDS}
        self._speech = SpeechTrack()
        self._presence = PresenceTrack(self.start_ns)
        self._health = HealthTrack()

    def take(self, record: Any, known_ns: int, *, shift_ns: int = 0) -> None:
        """Add a record that became known at a time. Records that no viewer sees only move the end.

        `shift_ns` takes the record's times to the timeline's clock, where they come from another.
        """
        start_ns = self.start_ns - shift_ns
        with self._changed:
            known_ms = ms_since(self.start_ns, known_ns)
            self._read = max(self._read, known_ms)
            self._end = max(self._end, known_ms)
            match record:
                case Utterance() if record.final and record.text:
                    self._put("speech", self._speech.take_utterance(record, start_ns))
                case RobotSpeech():
                    self._put("speech", self._speech.take_robot_speech(record, start_ns))
                case Presence():
                    for stretch in self._presence.take(replace(record, stamp_ns=record.stamp_ns + shift_ns)):
                        self._put("presence", stretch, is_news=False)
                case SocialFlag():
                    self._take_flag(record, start_ns, known_ms)
                case Decision():
                    self._put("decisions", make_decision_item(record, start_ns) | {"known": known_ms})
                case MonitorStatus():
                    health = self._health.take(record, known_ms)
                    if health:
                        self._put("health", health[0], is_news=health[1])
            self._forget()

    def take_past(self, record: Any, shift_ns: int = 0) -> None:
        """Add a record from before the viewer came, unless its flag is known already."""
        if getattr(record, "event_id", None) not in self._kinds["flags"].items:
            self.take(record, record.stamp_ns + shift_ns, shift_ns=shift_ns)

    def mark_outage(self, start_ns: int, end_ns: int) -> None:
        """Mark a time without a heartbeat of any node. A later end replaces an earlier one."""
        with self._changed:
            start, end = (ms_since(self.start_ns, time_ns) for time_ns in (start_ns, end_ns))
            self._end = max(self._end, end)
            self._put("outages", {"id": f"outage-{start}", "start": start, "end": end}, is_news=False)

    def note(self, text: str) -> None:
        """Add a remark for the viewer, such as an input that is missing and the remedy."""
        with self._changed:
            if text not in self._notes and len(self._notes) < MAX_NOTES:
                self._notes.append(text)
                self._change()

    def add_review(self, review: Item) -> None:
        """Add a verdict on a flag that is shown."""
        with self._changed:
            flag = self._kinds["flags"].items.get(review["event_id"])
            if flag:
                self._put("reviews", {**review, "id": review["event_id"], "start": flag["start"], "end": flag["end"]})

    def set_state(self, name: str, value: Any) -> None:
        """Set a value that holds until it is set again, such as the settings of the monitor."""
        with self._changed:
            if self._state.get(name) != value:
                self._state[name] = value
                self._change()

    def extend_to(self, end_ns: int) -> None:
        """Move the end on, such as to the end of a bag that is not read yet."""
        with self._changed:
            self._end = max(self._end, ms_since(self.start_ns, end_ns))

    def complete(self) -> None:
        """Declare that nothing more comes, as at the end of a bag."""
        with self._changed:
            self._is_complete = True
            self._change()

    def close(self) -> None:
        """Release all who wait for changes."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def changes(self, since: int = 0, wait_s: float = 0.0) -> Item:
        """Return the changes after a version. Wait up to `wait_s` for the first one."""
        with self._changed:
            if not self._is_timed_out(lambda: self._version > since, wait_s):
                self._is_timed_out(lambda: self._news_version > since, min(wait_s, MAX_CALM_S))
            used_attributes = {
                name for item in self._kinds["flags"].items.values() for name in item.get("attributes", ())
            }
            return {
                "version": self._version,
                "complete": self._is_complete,
                "from": self._from,
                "end": self._end,
                "read": self._read,
                "notes": list(self._notes),
                "state": dict(self._state),
                "dropped": sum(kind.dropped for kind in self._kinds.values()),
                "attributes": [a.value for a in Attribute if a in used_attributes] or [a.value for a in Attribute],
                **{name: kind.since(since) for name, kind in self._kinds.items()},
            }

    @property
    def _from(self) -> float:
        return 0.0 if self._keep_ms is None else max(self._begin, self._end - self._keep_ms)

    def _is_timed_out(self, changed: Callable[[], bool], wait_s: float) -> bool:
        """Wait for a change. Return whether none came."""
        return not self._changed.wait_for(lambda: changed() or self._is_complete or self._is_closed, wait_s)

    def _change(self) -> None:
        """Count a change that is sent at once, and wake the viewers."""
        self._version += 1
        self._news_version = self._version
        self._changed.notify_all()

    def _take_flag(self, flag: SocialFlag, start_ns: int, known_ms: float) -> None:
        before = self._kinds["flags"].items.get(flag.event_id, {})
        item = make_flag_item(flag, start_ns)
        state = {"at": known_ms, "state": flag.state.value, "probability": item["probability"]}
        item |= {"state": flag.state.value, "known": before.get("known", known_ms)}
        item["raised_least"] = before.get("raised_least", item["least"])  # the sensitivity may change meanwhile
        item["history"] = [*before.get("history", ()), state][-MAX_STATES:]
        self._put("flags", item)

    def _put(self, kind: str, item: Item | None, *, is_news: bool = True) -> None:
        """Store an item, within the times that the timeline keeps, and wake the viewers."""
        if item is None:
            return
        if self._keep_ms is None:
            self._end = max(self._end, item["end"])
        elif item["end"] < max(0.0, self._end - self._keep_ms):
            return
        else:  # stamps do not move the time of a running graph
            item["start"] = min(max(item["start"], 0.0), self._end)
            item["end"] = min(max(item["end"], item["start"]), self._end + MAX_AHEAD_MS)
            self._begin = min(self._begin, item["start"])
        self._version += 1
        if is_news:
            self._news_version = self._version
        self._kinds[kind].put(item, self._version)
        self._changed.notify_all()

    def _forget(self) -> None:
        """Drop what ended before the times that the timeline keeps."""
        for kind in self._kinds.values():
            kind.forget(self._from)
