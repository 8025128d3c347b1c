"""Replay a recorded session through the robot's logic: over DDS with its nodes, or in this process.

A bag holds sound and images, or the senses' records of them. Recorded utterances need silence marks among them, as the
ears publish them.
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
# The longest turn plus the time to transcribe it. A window waits this long for words at a live pace.
LIVE_LATENESS_S = 15.0

# Fields in which two runs may differ: the time of an output, and the clock.
_FREE = {"stamp_ns", "decision_ns", "decided_ns", "frame_id", "state"}


class SessionTopics(Config):
    """The topics of a bag by content; empty where there is none."""

    audio: str = ""
    audio_type: str = ""
    camera: str = ""
    sources: tuple[str, ...] = ()
    asks: bool = False

    @property
    def sensed(self) -> tuple[str, ...]:
        """The sources derived from sound and images, which arrive with a delay."""
        return (*((FRAMES, PRESENCE) if self.camera else ()), *((UTTERANCES,) if self.audio else ()))


def topics_of(bag: Path, audio: str = "/audio") -> SessionTopics:
    """Find the topics of a bag, with its sound on the topic `audio`."""
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
    """Yield the nodes' output, with each sense in its own process. In lockstep if `rate` is 0."""
    topics = topics_of(bag)
    for one in play_to_nodes(bag, hosts_for(topics, rate, partials=partials), rate=rate, domain_id=domain_id):
        for topic, why in one.what.get("skipped_topics", {}).items():
            if topic in {topics.audio, topics.camera}:
                raise TransportError(f"{topic} cannot be played: {why}")
        yield one


def hosts_for(topics: SessionTopics, rate: float, *, partials: bool = False) -> Hosts:
    """List the nodes that a bag needs. `partials` adds partial utterances, for display."""
    lateness_s = LIVE_LATENESS_S if rate else 0.0
    hosts: list[Mapping[str, Mapping[str, Any]]] = []
    # A replay that waits for a slow node is no dead microphone, and speech continues after the wait.
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
        # ROS cannot infer the type of an empty list.
        deciding["selector"] = {"sources": list(topics.sensed)} if topics.sensed else {}
    return [*hosts, deciding]


def in_process(bag: Path) -> Iterator[NodeOutput]:
    """Yield the same output from the nodes' own logic, without ROS."""
    topics = topics_of(bag)
    hearing = HearingConfig(segments=SegmentConfig(partial_every_s=0))
    here = _Here(topics)
    with BagReader(bag) as reader:
        whisper = Whisper(hearing.whisper) if topics.audio else None
        at_ns, began_s = 0, time.monotonic()  # after loading, as with nodes
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
        """Yield the closed windows, then the flags that cite them."""
        for window in self._monitor.closed_windows():
            yield WINDOWS, window
        for flag in flags:
            yield FLAGS, flag


def items(said: Iterable[NodeOutput]) -> dict[str, dict[str, Any]]:
    """Index a run's output by item. Leaves out what closed late, as parity does not cover it."""
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
    """Remove times and durations."""
    plain = {name: value for name, value in what.items() if name not in _FREE}
    if "provenance" in plain:
        plain["provenance"] = {name: value for name, value in what["provenance"].items() if name != "latency"}
    return plain


def first_differing_output(first: Iterable[NodeOutput], second: Iterable[NodeOutput]) -> dict[str, Any] | None:
    """Find the earliest item in which two runs differ, and the difference. None means parity."""
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
