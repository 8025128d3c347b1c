"""A recorded session watched by the robot's logic: over DDS by its nodes, or in this process; the same either way.

A bag holds sound and pictures, or what senses made of them; utterances in it come with marks of silence among them,
as ears give them.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from action_selector.config import RequestConfig
from action_selector.selector import DueRequest, Selector, SelectorRecord
from action_selector.selector_factory import SelectorFiles, open_selector
from norm_core.bags.reader import BagReader
from norm_core.records.episode import Query
from norm_core.records.flag import SocialFlag
from norm_core.records.frame import Frame
from norm_core.records.json_codec import to_plain
from norm_core.records.messages import message_type
from norm_core.records.speech import Utterance
from norm_core.runtime.config import Config
from norm_core.runtime.time import ReplayClock
from norm_core.runtime.watermarks import FRAMES, PRESENCE, UTTERANCES
from norm_monitor.senses.camera.image_types import IMAGE_TYPES
from norm_monitor.senses.speech.hearing import HearingConfig
from norm_monitor.senses.speech.segmenter import SegmentConfig
from norm_monitor.senses.speech.whisper import Whisper
from sim_replays.drivers.bag_driver import BagSenses, replay_monitor
from sim_replays.drivers.node_driver import END, LOSSLESS, Hosts, NodeOutput, TransportError, play_to_nodes

WINDOWS, FLAGS, ANSWERS, HEARD = (f"/tactful/{name}" for name in ("windows", "flags", "answers", "utterances"))
# The longest that anybody speaks, and the time to write it down: so long a window waits for words at a live pace.
LIVE_LATENESS_S = 15.0

# What of an item two runs may differ in: when it was known, by whose clock.
_FREE = {"stamp_ns", "decision_ns", "decided_ns", "frame_id", "state"}


class SessionTopics(Config):
    """What a bag has to offer, by topic; empty where it has none."""

    audio: str = ""
    audio_type: str = ""
    camera: str = ""
    sources: tuple[str, ...] = ()
    asks: bool = False

    @property
    def sensed(self) -> tuple[str, ...]:
        """What is made of sound and pictures as they come, and so is known a while after it was."""
        return (*((FRAMES, PRESENCE) if self.camera else ()), *((UTTERANCES,) if self.audio else ()))


def topics_of(bag: Path, audio: str = "/audio") -> SessionTopics:
    """What is in a bag; its sound is on the topic audio."""
    with BagReader(bag) as reader:
        types = {topic.topic: topic.type_name for topic in reader.topics if topic.message_count}
    camera = next((topic for topic, type_name in types.items() if type_name in IMAGE_TYPES), "")
    audio = audio if audio in types else ""
    told = set(types.values())
    there = {
        FRAMES: camera or message_type(Frame) in told,
        PRESENCE: camera or "norm_interfaces/msg/Presence" in told,
        UTTERANCES: audio or message_type(Utterance) in told,
    }
    return SessionTopics(
        audio=audio,
        audio_type=types.get(audio, ""),
        camera=camera,
        sources=tuple(source for source, topics in there.items() if topics),
        asks=message_type(Query) in told,
    )


def over_dds(
    bag: Path, rate: float = 0.0, *, domain_id: int | None = None, partials: bool = False
) -> Iterator[NodeOutput]:
    """What the nodes say, each sense in a process of its own; in lockstep where rate is 0, else at that pace."""
    topics = topics_of(bag)
    for one in play_to_nodes(bag, hosts_for(topics, rate, partials=partials), rate=rate, domain_id=domain_id):
        for topic, why in one.what.get("skipped_topics", {}).items():
            if topic in {topics.audio, topics.camera}:
                raise TransportError(f"{topic} cannot be played: {why}")
        yield one


def hosts_for(topics: SessionTopics, rate: float, *, partials: bool = False) -> Hosts:
    """The nodes that a bag needs; partials asks for speech under way, which is for show."""
    lateness_s = LIVE_LATENESS_S if rate else 0.0
    hosts: list[Mapping[str, Mapping[str, Any]]] = []
    # A replay that waits for a slow node is no microphone that stopped, and what was said goes on after it.
    patient = {"stale_after_s": 0.0}
    if topics.camera:
        hosts.append({"camera": {"topic": topics.camera, **patient, "qos_overrides": {topics.camera: LOSSLESS}}})
    if topics.audio:
        ears = {"audio_topic": topics.audio, "audio_type": topics.audio_type, "partial_every_s": 2.0 * partials}
        hosts.append({"ears": {**ears, **patient, "qos_overrides": {topics.audio: LOSSLESS}}})
    deciding: dict[str, Mapping[str, Any]] = {
        "monitor": {"windows": {"sources": list(topics.sources), "lateness_s": lateness_s}},
    }
    if topics.asks:
        # An empty list has no type by which ROS could take it.
        deciding["selector"] = {"sources": list(topics.sensed)} if topics.sensed else {}
    return [*hosts, deciding]


def in_process(bag: Path) -> Iterator[NodeOutput]:
    """The same from the nodes' own logic, without ROS."""
    topics = topics_of(bag)
    hearing = HearingConfig(segments=SegmentConfig(partial_every_s=0))
    here = _Here(topics)
    with BagReader(bag) as reader:
        whisper = Whisper(hearing.whisper) if topics.audio else None
        at_ns, began_s = 0, time.monotonic()  # once all is loaded, as where nodes are played to
        for at_ns, one in BagSenses(reader, hearing, whisper, topics.audio).records():
            for topic, told in here.take(one, at_ns):
                yield NodeOutput(topic=topic, at_ns=at_ns, wall_s=time.monotonic() - began_s, what=to_plain(told))
        for topic, told in here.end_input():
            yield NodeOutput(topic=topic, at_ns=at_ns, wall_s=time.monotonic() - began_s, what=to_plain(told))
    took_s = time.monotonic() - began_s
    yield NodeOutput(topic=END, at_ns=at_ns, wall_s=took_s, what={"took_s": took_s, "lost": {}, "dropped": {}})


class _Here:
    """Monitor and selector, record by record."""

    def __init__(self, topics: SessionTopics) -> None:
        self._clock = ReplayClock()
        self._monitor = replay_monitor(topics.sources, self._clock)
        requests = RequestConfig(sources=topics.sensed)
        self._selector = open_selector(SelectorFiles(), self._clock, requests=requests) if topics.asks else None

    def take(self, one: Any, at_ns: int) -> Iterator[tuple[str, Any]]:
        self._clock.advance_to(max(at_ns, self._clock.now_ns()))
        if isinstance(one, Utterance):
            yield HEARD, one
        yield from self._monitored(self._monitor.take(one))
        if self._selector and isinstance(one, SelectorRecord):
            yield from self._answered(self._selector, self._selector.take(one))

    def end_input(self) -> Iterator[tuple[str, Any]]:
        yield from self._monitored(self._monitor.end_input())
        if self._selector:
            yield from self._answered(self._selector, self._selector.end_input())

    @staticmethod
    def _answered(selector: Selector, due: Iterable[DueRequest]) -> Iterator[tuple[str, Any]]:
        for one in due:
            yield ANSWERS, selector.decide(one).answer

    def _monitored(self, flags: Iterable[SocialFlag]) -> Iterator[tuple[str, Any]]:
        """The windows that closed, then the flags that cite them."""
        for window in self._monitor.closed_windows():
            yield WINDOWS, window
        for flag in flags:
            yield FLAGS, flag


def items(said: Iterable[NodeOutput]) -> dict[str, dict[str, Any]]:
    """What a run came to, item by item; what closed late stands outside parity and is left out."""
    found: dict[str, dict[str, Any]] = {}
    for one in said:
        what = one.what
        match one.topic:
            case "/tactful/windows" if not what["late"]:
                found[f"{what['end_ns']} window from {what['start_ns']}"] = what
            case "/tactful/utterances" if what["final"]:
                found[f"{what['start_ns']} utterance {what['utterance_id']}"] = what
            case "/tactful/flags" if not what["provenance"]["window_late"]:
                found[f"{what['onset_ns']} flag {what['event_id']}"] = what
            case "/tactful/answers":
                found[f"{what['stamp_ns']} answer to {what['query_id']}"] = what
    return {name: _lasting(what) for name, what in sorted(found.items(), key=lambda pair: _when(pair[0]))}


def _when(name: str) -> tuple[int, str]:
    return int(name.split(maxsplit=1)[0]), name


def _lasting(what: dict[str, Any]) -> dict[str, Any]:
    """Without when it was known and how long it took."""
    plain = {name: value for name, value in what.items() if name not in _FREE}
    if "provenance" in plain:
        plain["provenance"] = {name: value for name, value in what["provenance"].items() if name != "latency"}
    return plain


def first_difference(first: Iterable[NodeOutput], second: Iterable[NodeOutput]) -> dict[str, Any] | None:
    """The earliest item in which two runs differ, and how; None for parity."""
    one, other = items(first), items(second)
    for name in sorted(one | other, key=_when):
        mine, theirs = one.get(name, {"item": "missing"}), other.get(name, {"item": "missing"})
        if mine != theirs:
            fields = sorted(field for field in mine | theirs if mine.get(field) != theirs.get(field))
            return {
                "item": name,
                "differs_in": fields,
                "first": {field: mine.get(field) for field in fields},
                "second": {field: theirs.get(field) for field in fields},
            }
    return None
