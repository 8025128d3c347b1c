"""Fill the view's timeline from a bag."""

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from norm_core.bags.reader import BagError, BagReader
from norm_core.records.decision import Decision
from norm_core.records.messages import MessageError, message_type
from norm_core.records.speech import Utterance
from norm_core.records.status import MonitorStatus
from norm_core.runtime.time import ReplayClock
from norm_core.runtime.wording import count_of
from sim_replays.drivers.bag_driver import BagSenses, feed_monitor, replay_monitor
from study_desk.log.recording import BAGGED
from study_desk.view.timeline import SessionTimeline
from tactful_cli.bag_senses import remarks_of
from tactful_cli.flag_watch import NOTHING_TO_WATCH
from tactful_cli.study.watch import holds_flags

NO_SPEECH = "Speech was not recorded in this bag; record /tactful/utterances and /tactful/robot_speech with the flags."


def bag_records(
    bag: BagReader, timeline: SessionTimeline, senses_for: Callable[[BagReader], BagSenses]
) -> Iterator[tuple[int, Any]]:
    """Return what the nodes published; of a bag without flags, what the monitor makes of it here."""
    if holds_flags(bag):
        if not any(topic.type_name == message_type(Utterance) for topic in bag.topics):
            timeline.set_state("speech_missing", NO_SPEECH)
        return _recorded(bag, timeline, (*BAGGED, MonitorStatus))
    return _monitored(bag, timeline, senses_for(bag))


def _recorded(bag: BagReader, timeline: SessionTimeline, kinds: Iterable[type]) -> Iterator[tuple[int, Any]]:
    """Yield the records of some kinds that the nodes published."""
    wanted = {message_type(kind) for kind in kinds}
    topics = [topic.topic for topic in bag.topics if topic.type_name in wanted]
    unreadable = 0
    for message in bag.messages(topics) if topics else ():
        try:
            yield message.stamp_ns, bag.decode(message)
        except MessageError:
            unreadable += 1
    if unreadable:
        timeline.note(f"{count_of(unreadable, 'message')} of the bag cannot be read")


def _monitored(bag: BagReader, timeline: SessionTimeline, senses: BagSenses) -> Iterator[tuple[int, Any]]:
    """Return what the senses and the monitor make of the bag. Raises BagError for no input."""
    if not senses.topics:
        raise BagError(f"{timeline.title}: {NOTHING_TO_WATCH}")
    timeline.note("The bag holds no flags, so the monitor runs on it here, without a judge.")

    def run() -> Iterator[tuple[int, Any]]:
        clock = ReplayClock()
        monitor = replay_monitor(senses.sources, clock)
        published = list(
            _recorded(bag, timeline, (Decision, MonitorStatus))
        )  # read first: a bag is read once at a time
        yield from heapq.merge(feed_monitor(senses, monitor, clock), published, key=lambda pair: pair[0])
        for remark in remarks_of(bag, senses, monitor):
            timeline.note(remark)

    return run()
