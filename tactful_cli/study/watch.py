"""Run the senses and the monitor on a bag for `tactful study add`."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from norm_core.bags.reader import BagReader
from norm_core.records.decision import Decision
from norm_core.records.flag import SocialFlag
from norm_core.records.messages import MessageError, message_type
from norm_core.runtime.counters import describe
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import ReplayClock, ns_to_s
from norm_core.runtime.wording import count_of
from norm_monitor.senses.speech.whisper import WhisperConfig
from sim_replays.drivers.bag_driver import feed_monitor, replay_monitor
from tactful_cli.bag_senses import remarks_of, senses_of
from tactful_cli.console import complain, err


def holds_flags(bag: BagReader) -> bool:
    """Whether the bag holds recorded flags."""
    return any(t.type_name == message_type(SocialFlag) and t.message_count for t in bag.topics)


def monitored_records(
    bag: BagReader,
    topic: str,
    whisper: WhisperConfig,
    robot_topics: Iterable[str] = (),
    words_topics: Sequence[str] = (),
) -> Iterator[tuple[int, Any]]:
    """Yield a bag's speech, presence, flags and decisions, each with the time it became known. Prints progress."""
    senses = senses_of(bag, topic, whisper, robot_topics, words_topics=words_topics)
    clock = ReplayClock()
    monitor = replay_monitor(senses.sources, clock)
    start_ns, end_ns = bag.bounds_ns or (0, 0)
    events: set[str] = set()
    try:
        decisions = _decisions(bag)
        with err.status("watching") as progress:
            for now_ns, record in heapq.merge(
                feed_monitor(senses, monitor, clock), decisions, key=lambda pair: pair[0]
            ):
                if isinstance(record, SocialFlag):
                    events.add(record.event_id)
                done = f"{ns_to_s(now_ns - start_ns):.0f} of {ns_to_s(end_ns - start_ns):.0f} s"
                progress.update(f"watching: {done}, {count_of(len(events), 'event')}")
                yield now_ns, record
    except MessageError as error:
        raise TactfulError(f"a message of the bag cannot be read: {error}; --as-recorded passes over such") from error
    for remark in remarks_of(bag, senses, monitor):
        complain(remark)
    for line in describe((*senses.health_log.counters, *monitor.counters)):
        err.print(line, soft_wrap=True)


def _decisions(bag: BagReader) -> list[tuple[int, Decision]]:
    topics = [t.topic for t in bag.topics if t.type_name == message_type(Decision)]
    return [(stored.stamp_ns, bag.decode(stored)) for stored in bag.messages(topics)] if topics else []
