"""Copy a time range and some topics of a bag into a new bag."""

from collections import Counter, deque
from collections.abc import Callable, Collection
from decimal import Decimal, InvalidOperation
from pathlib import Path

from norm_core.bags.reader import BagMessage, BagReader
from norm_core.bags.topic import BagError, BagTopic
from norm_core.bags.writer import atomic_bag
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S

# Always latched, whatever the bag states; its messages hold different transforms, so all of them are copied.
_ALWAYS_LATCHED = "/tf_static"
_MAX_LATCHED = 1_000  # messages per topic; nobody joins late on a latched topic with more
# Bounds between seconds from the start, seconds since the epoch, and nanoseconds since the epoch.
_MAX_BAG_S, _MAX_STAMP_S, _MAX_STAMP_NS = 10**8, 10**12, 2**63


@record
class BagCut:
    """The contents of a cut. `latched` counts messages from before the cut, which stand at its start."""

    made: str
    from_ns: int
    to_ns: int
    messages_by_topic: dict[str, int]
    latched: dict[str, int]
    dropped_topics: tuple[str, ...]

    @property
    def messages(self) -> int:
        """The number of messages in the cut."""
        return sum(self.messages_by_topic.values())


def parse_time_ns(text: str, start_ns: int) -> int:
    """Parse seconds after `start_ns`, seconds since the epoch, or nanoseconds since the epoch, by magnitude."""
    try:
        value = Decimal(text)
        if not 0 <= value < _MAX_STAMP_NS:
            raise InvalidOperation
    except InvalidOperation as error:
        raise BagError(
            f"{text!r} is no time: give seconds after the bag's start (12.5), or a stamp since the epoch in seconds "
            "(1700000000.5) or nanoseconds (1700000000500000000)"
        ) from error
    if value < _MAX_BAG_S:
        return start_ns + int(value * NS_PER_S)
    return int(value * NS_PER_S) if value < _MAX_STAMP_S else int(value)


def cut_bag(
    bag: Path,
    out: Path,
    from_text: str = "0",
    to_text: str = "",
    *,
    topics: Collection[str] | None = None,
    progress: Callable[[int], None] = lambda messages: None,
) -> BagCut:
    """Write the messages from one time up to, but excluding, another; by default to the bag's end.

    The last messages of a latched topic before the cut are copied with the cut's first stamp, as a late subscriber
    would receive them.
    """
    with BagReader(bag) as reader:
        bounds = reader.bounds_ns
        if bounds is None:
            raise BagError(f"{bag}: holds no message to cut")
        from_ns = parse_time_ns(from_text, bounds[0])
        to_ns = parse_time_ns(to_text, bounds[0]) if to_text else bounds[1] + 1
        if not from_ns < to_ns or from_ns > bounds[1] or to_ns <= bounds[0]:
            raise BagError(
                f"{bag}: cannot be cut from {from_text} to {to_text or 'its end'}; it lasts "
                f"{(bounds[1] - bounds[0]) / NS_PER_S:.3f} s from {bounds[0]} ns: choose two times in it, --from first"
            )
        chosen = {t.key: t for t in reader.topics if topics is None or t.topic in topics}
        reader.require(topics or ())
        by_topic: Counter[str] = Counter()
        before: Counter[str] = Counter()
        with atomic_bag(out) as writer:
            for message in _latched_before(reader, [*chosen.values()], from_ns):
                writer.write_copied(reader.with_definitions(message), message.data, from_ns)
                before[message.topic] += 1
            names = {topic.topic for topic in chosen.values()}
            for message in reader.messages(names, from_ns, to_ns) if names else ():
                writer.write_copied(reader.with_definitions(message), message.data, message.stamp_ns)
                by_topic[message.topic] += 1
                progress(1)
        dropped = sorted({t.topic for t in reader.topics} - by_topic.keys() - before.keys())
    return BagCut(
        made=str(out),
        from_ns=from_ns,
        to_ns=to_ns,
        messages_by_topic=dict(sorted(by_topic.items())),
        latched=before,
        dropped_topics=tuple(dropped),
    )


def _latched_before(reader: BagReader, topics: list[BagTopic], from_ns: int) -> list[BagMessage]:
    """Return the last messages of each latched topic before a time, in stamp order."""
    latest_by_topic: dict[tuple[str, str], deque[BagMessage]] = {}
    for topic in topics:
        depth = _MAX_LATCHED if topic.topic == _ALWAYS_LATCHED else topic.latched_depth
        if depth:
            latest_by_topic[topic.key] = deque(maxlen=min(depth, _MAX_LATCHED))
    names = {topic for topic, _ in latest_by_topic}
    for message in reader.messages(names, None, from_ns) if names else ():
        if (message.topic, message.type_name) in latest_by_topic:
            messages = latest_by_topic[message.topic, message.type_name]
            # A publisher that repeats itself adds nothing; its last message counts.
            same = next((other for other in messages if other.data == message.data), None)
            if same:
                messages.remove(same)
            messages.append(message)
    return sorted((m for messages in latest_by_topic.values() for m in messages), key=lambda message: message.stamp_ns)
