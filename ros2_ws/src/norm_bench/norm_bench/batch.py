"""The messages that a lockstep replay sends before it waits for the nodes."""

from collections import Counter
from collections.abc import Iterable

from norm_core.bags.reader import BagMessage
from norm_core.runtime.time import NS_PER_S

# The longest stretch of the bag in one batch.
BATCH_NS = 3 * NS_PER_S
# The most messages of a topic in one batch: subscribers keep 30 messages, 50 utterances.
MAX_BATCH = 25
# The same for a topic whose subscribers keep every message.
MAX_LOSSLESS_BATCH = 200
# The size of a batch. The middleware's shared memory holds 512 kB, and messages beyond wait for its next heartbeat.
MAX_BATCH_BYTES = 200_000
MAX_ROOMY_BATCH_BYTES = 4_000_000


class Batch:
    """The messages sent since the nodes last processed all, within what their queues and the middleware hold."""

    def __init__(self, start_ns: int, lossless: Iterable[str], *, is_roomy: bool) -> None:
        self._max_counts = dict.fromkeys(lossless, MAX_LOSSLESS_BATCH)
        self._max_bytes = MAX_ROOMY_BATCH_BYTES if is_roomy else MAX_BATCH_BYTES
        self._counts: Counter[str] = Counter()
        self._start_ns = start_ns
        self._bytes = 0

    def __bool__(self) -> bool:
        """Return whether it holds a message."""
        return self._counts.total() > 0

    def has_room_for(self, message: BagMessage) -> bool:
        """Return whether a further message keeps within the limits."""
        has_room = self._counts[message.topic] < self._max_counts.get(message.topic, MAX_BATCH)
        return (
            has_room
            and message.stamp_ns < self._start_ns + BATCH_NS
            and self._bytes + len(message.data) <= self._max_bytes
        )

    def add(self, message: BagMessage) -> None:
        """Add a message that is sent."""
        self._counts[message.topic] += 1
        self._bytes += len(message.data)

    def begin(self, start_ns: int) -> None:
        """Begin anew from a stamp of the bag, as the nodes have processed all."""
        self._counts.clear()
        self._start_ns = start_ns
        self._bytes = 0
