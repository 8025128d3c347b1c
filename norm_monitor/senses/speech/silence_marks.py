"""Silence marks: nobody started to speak before their stamp. No other module makes them.

A mark never passes words that wait for transcription, so a window that a mark closes contains all its speech.
"""

from collections.abc import Iterable, Iterator
from threading import Lock

from norm_core.records.speech import Utterance, make_silence_mark
from norm_core.runtime.time import NS_PER_MS, NS_PER_S

# The growth of silence that is worth a mark.
MARK_EVERY_NS = 100 * NS_PER_MS
# The interval at which a mark is repeated while silence does not grow.
REPEAT_EVERY_NS = NS_PER_S


class SilenceMarks:
    """A maker of marks for each further tenth of a second of silence. Two threads may share it."""

    def __init__(self, source_topic: str) -> None:
        self._source_topic = source_topic
        self._marked_ns: int | None = None
        self._repeated_ns = 0
        self._is_rough = False  # whether anything came late since the last mark
        self._lock = Lock()
        self._waiting = 0  # segments that wait for transcription
        self._behind: Utterance | None = None  # the mark to yield after their words

    def mark(self, quiet_until_ns: int | None, *, is_rough: bool = False) -> list[Utterance]:
        """Return a mark if silence has grown and no words wait. If words wait, store the mark until after them."""
        marked_ns = self._marked_ns
        self._is_rough |= is_rough
        if quiet_until_ns is None:
            return []
        if marked_ns is None or quiet_until_ns < marked_ns or quiet_until_ns - marked_ns >= MARK_EVERY_NS:
            self._marked_ns = quiet_until_ns
            with self._lock:
                mark = make_silence_mark(quiet_until_ns, self._source_topic, is_rough=self._is_rough)
                has_to_wait = self._waiting > 0
                self._behind = mark if has_to_wait else None
                self._is_rough &= has_to_wait  # a mark that replaces a stored one is rough too
            if not has_to_wait:
                return [mark]
        return []

    def mark_at(self, now_ns: int, quiet_until_ns: int) -> list[Utterance]:
        """Return a mark as `mark` does, and repeat it each second while silence does not grow."""
        marks = self.mark(quiet_until_ns)
        if not marks and not 0 <= now_ns - self._repeated_ns < REPEAT_EVERY_NS:
            marks = [make_silence_mark(quiet_until_ns, self._source_topic)]
        if marks:
            self._repeated_ns = now_ns
        return marks

    def add_words(self) -> None:
        """Count one more segment that waits for transcription."""
        with self._lock:
            self._waiting += 1

    def drop_words(self) -> None:
        """Count one segment that was dropped from a full queue."""
        with self._lock:
            self._waiting -= 1

    def finish_words(self) -> Iterator[Utterance]:
        """Count one transcribed segment. After the last one, yield the stored mark."""
        while True:
            with self._lock:
                mark, self._behind = (self._behind, None) if self._waiting == 1 else (None, self._behind)
                if mark is None:
                    self._waiting -= 1
                    return
            yield mark  # before the count falls, so that no later mark overtakes it


def make_script_marks(
    utterances: Iterable[Utterance], start_ns: int, end_ns: int, every_ns: int, source_topic: str
) -> Iterator[tuple[int, Utterance]]:
    """Yield marks at a steady rate, each with its time, as ears with perfect transcripts would make them."""
    spans = [(utterance.start_ns, utterance.end_ns) for utterance in utterances]
    for now_ns in range(start_ns, end_ns, every_ns):
        current_starts_ns = [begin_ns for begin_ns, stop_ns in spans if begin_ns <= now_ns < stop_ns]
        yield now_ns, make_silence_mark(min([now_ns, *current_starts_ns]), source_topic)
