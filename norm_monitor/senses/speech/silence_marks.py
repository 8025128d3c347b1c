"""Marks of silence: how far it is known that nobody began to speak. They are made here alone.

A mark never passes words that wait to be transcribed, so a window that a mark closes holds all that was said in it.
"""

from collections.abc import Iterable, Iterator
from threading import Lock

from norm_core.records.speech import Utterance, silence_mark
from norm_core.runtime.time import NS_PER_MS

MARK_EVERY_NS = 100 * NS_PER_MS


class SilenceMarks:
    """Give a mark where silence has grown by a tenth of a second at least; two threads may share it."""

    def __init__(self, source_topic: str) -> None:
        self._source_topic = source_topic
        self._marked_ns: int | None = None
        self._lock = Lock()
        self._waiting = 0  # stretches of speech that are not transcribed yet
        self._behind: Utterance | None = None  # the mark that follows their words

    def mark(self, quiet_until_ns: int | None) -> Iterator[Utterance]:
        """Give a mark where silence has grown enough and no words wait; else keep it to follow the words."""
        marked_ns = self._marked_ns
        if quiet_until_ns is None:
            return
        if marked_ns is None or quiet_until_ns < marked_ns or quiet_until_ns - marked_ns >= MARK_EVERY_NS:
            self._marked_ns = quiet_until_ns
            mark = silence_mark(quiet_until_ns, self._source_topic)
            with self._lock:
                waits = self._waiting > 0
                self._behind = mark if waits else None
            if not waits:
                yield mark

    def add_words(self) -> None:
        """Take note of one more stretch of speech that waits to be transcribed."""
        with self._lock:
            self._waiting += 1

    def drop_words(self) -> None:
        """Take note that one was given up for lack of room."""
        with self._lock:
            self._waiting -= 1

    def finish_words(self) -> Iterator[Utterance]:
        """Take note that one is transcribed; after the last, give the mark that followed it."""
        while True:
            with self._lock:
                mark, self._behind = (self._behind, None) if self._waiting == 1 else (None, self._behind)
                if mark is None:
                    self._waiting -= 1
                    return
            yield mark  # before the count falls, so that no later mark overtakes it


def marks_of_script(
    utterances: Iterable[Utterance], start_ns: int, end_ns: int, every_ns: int, source_topic: str
) -> Iterator[tuple[int, Utterance]]:
    """Give marks at a steady rate, each with its time, as ears would that know each utterance's times."""
    spans = [(said.start_ns, said.end_ns) for said in utterances]
    for now_ns in range(start_ns, end_ns, every_ns):
        under_way = [begin_ns for begin_ns, stop_ns in spans if begin_ns <= now_ns < stop_ns]
        yield now_ns, silence_mark(min([now_ns, *under_way]), source_topic)
