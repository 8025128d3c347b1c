"""Read a bag in order, while other threads decode the images that will probably be selected.

Decoding and shrinking release the GIL. They take half the time of a replay without models.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from norm_core.bags.reader import BagMessage, BagReader
from norm_core.records.frame import Frame
from norm_monitor.senses.camera.frame_keeper import FrameKeeper
from norm_monitor.senses.camera.picture import Picture, picture_in, picture_of

AHEAD_MESSAGES, AHEAD_BYTES = 256, 32_000_000
MOST_THREADS = 4


class PicturesAhead:
    """The prefetched images of one camera. The frame selector decides; an unneeded frame is dropped."""

    def __init__(self, bag: BagReader, keeper: FrameKeeper, topic: str) -> None:
        self._bag, self._keeper, self._topic = bag, keeper, topic
        self._begun: deque[tuple[Picture | None, Future[Frame] | None]] = deque()
        self._latest_slot: int | None = None

    def messages(self, stored: Iterable[BagMessage]) -> Iterator[BagMessage]:
        """Yield the same messages. Call next_picture for each camera message as it comes."""
        waiting: deque[BagMessage] = deque()
        waiting_bytes, self._latest_slot = 0, None
        self._begun.clear()
        with ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1), "pictures") as pool:
            try:
                for one in stored:
                    waiting.append(one)
                    waiting_bytes += len(one.data)
                    if one.topic == self._topic:
                        self._begun.append(self._begin(one, pool))
                    while len(waiting) > AHEAD_MESSAGES or waiting_bytes > AHEAD_BYTES:
                        waiting_bytes -= len(waiting[0].data)
                        yield waiting.popleft()
            except GeneratorExit:
                pool.shutdown(cancel_futures=True)
                raise
            except Exception:  # messages before the damage come first
                yield from waiting
                raise
            yield from waiting

    def next_picture(self, stored: BagMessage) -> tuple[Picture, Future[Frame] | None]:
        """Return the image of the last message, and its frame if one is being made."""
        picture, ahead = self._begun.popleft()
        return picture or picture_of(self._bag.decode(stored)), ahead

    def _begin(self, stored: BagMessage, pool: ThreadPoolExecutor) -> tuple[Picture | None, Future[Frame] | None]:
        picture = picture_in(stored.data, compressed=stored.type_name.endswith("/CompressedImage"))
        if picture is None:
            return None, None
        slot = self._keeper.sampler.slot_of(self._keeper.stamp_of(picture))
        if slot == self._latest_slot:
            return picture, None
        self._latest_slot = slot
        return picture, pool.submit(self._keeper.frame_of, picture)
