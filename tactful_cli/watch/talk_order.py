"""Rows in the order of what they report, so that a reply stands behind the words that it answers."""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from tactful_cli.watch.node_view import WatchRow


class TalkOrder:
    """Hold rows back until all that was said before them has arrived, but no longer than `hold_ns`."""

    def __init__(self, hold_ns: int) -> None:
        self._hold_ns = hold_ns
        self._rows: list[tuple[int, int, Sequence[WatchRow]]] = []  # a heap: time, number, rows
        self._count = 0
        self._complete_until_ns = 0

    def add(self, at_ns: int, rows: Sequence[WatchRow]) -> None:
        """Add rows about a time; those about one time keep their order."""
        self._count += 1
        heappush(self._rows, (at_ns, self._count, rows))

    def complete(self, until_ns: int) -> None:
        """Note that nothing that was said before this time is still to come."""
        self._complete_until_ns = max(self._complete_until_ns, until_ns)

    def due(self, now_ns: int | None = None) -> Iterator[tuple[int, Sequence[WatchRow]]]:
        """Yield the rows to print by now, each with its own time; without a time, all that are held back."""
        while self._rows:
            at_ns = self._rows[0][0]
            if now_ns is not None and at_ns > max(self._complete_until_ns, now_ns - self._hold_ns):
                return
            yield at_ns, heappop(self._rows)[2]
