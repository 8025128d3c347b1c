"""A session that runs through the logic of the robot's nodes in this process."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from action_selector.selector import DueRequest, Selector, SelectorFiles, SelectorRecord, open_selector
from action_selector.selector_config import RequestConfig
from norm_core.bags.reader import BagReader
from norm_core.records.flag import SocialFlag
from norm_core.records.json_codec import to_plain
from norm_core.records.speech import Utterance
from norm_core.records.topics import UTTERANCES_TOPIC, full_topic
from norm_core.runtime.time import ReplayClock
from norm_monitor.replay.bag_driver import BagSenses, make_replay_monitor
from norm_monitor.replay.node_driver import ANSWERS, END, FLAGS, WINDOWS, NodeOutput, SessionTopics, topics_of
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from norm_monitor.senses.speech.whisper import Whisper


def replay_in_process(bag: Path) -> Iterator[NodeOutput]:
    """Yield the utterances, windows, flags and answers that the nodes would publish, without ROS."""
    topics = topics_of(bag)
    hearing = HearingConfig(partial_every_s=0)
    roles = _Roles(topics)
    with BagReader(bag) as reader:
        whisper = Whisper(hearing.whisper) if topics.audio else None
        at_ns = 0
        began_s = time.monotonic()  # after loading, as with nodes
        for at_ns, sensed in BagSenses(reader, hearing, whisper, topics.audio).records():
            for topic, record in roles.take(sensed, at_ns):
                wall_s = time.monotonic() - began_s
                yield NodeOutput(topic=topic, at_ns=at_ns, wall_s=wall_s, message=to_plain(record))
        for topic, record in roles.end_input():
            yield NodeOutput(topic=topic, at_ns=at_ns, wall_s=time.monotonic() - began_s, message=to_plain(record))
    took_s = time.monotonic() - began_s
    yield NodeOutput(topic=END, at_ns=at_ns, wall_s=took_s, message={"took_s": took_s, "lost": {}, "dropped": {}})


class _Roles:
    """The monitor and, if the bag has queries, the selector, record by record."""

    def __init__(self, topics: SessionTopics) -> None:
        self._clock = ReplayClock()
        self._monitor = make_replay_monitor(topics.sources, self._clock)
        requests = RequestConfig(sources=topics.sensed)
        self._selector = open_selector(SelectorFiles(), self._clock, requests=requests) if topics.has_queries else None

    def take(self, record: Any, at_ns: int) -> Iterator[tuple[str, Any]]:
        self._clock.advance_to(max(at_ns, self._clock.now_ns()))
        if isinstance(record, Utterance):
            yield full_topic(UTTERANCES_TOPIC), record
        yield from self._windows_and_flags(self._monitor.take(record))
        if self._selector and isinstance(record, SelectorRecord):
            yield from self._answers(self._selector, self._selector.take(record))

    def end_input(self) -> Iterator[tuple[str, Any]]:
        yield from self._windows_and_flags(self._monitor.end_input())
        if self._selector:
            yield from self._answers(self._selector, self._selector.end_input())

    @staticmethod
    def _answers(selector: Selector, due: Iterable[DueRequest]) -> Iterator[tuple[str, Any]]:
        for request in due:
            yield ANSWERS, selector.decide(request).answer

    def _windows_and_flags(self, flags: Iterable[SocialFlag]) -> Iterator[tuple[str, Any]]:
        """Yield the closed windows, then the flags that cite them."""
        for window in self._monitor.closed_windows():
            yield WINDOWS, window
        for flag in flags:
            yield FLAGS, flag
