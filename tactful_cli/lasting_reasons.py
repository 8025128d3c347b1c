"""The reasons of nodes that last, so that a reason that comes and goes is not printed each time."""

import re
from collections.abc import Iterable

# A reason is new after it has held for so long.
NEW_AFTER_S = 3.0
# A reason is gone after it has been absent for so long.
GONE_AFTER_S = 10.0


class LastingReasons:
    """The reasons of each node that have lasted. Other digits do not make a reason another one."""

    def __init__(self) -> None:
        self._stated: dict[str, dict[str, str]] = {}
        self._changed_s: dict[tuple[str, str], float] = {}

    def accept(self, node: str, reasons: Iterable[str]) -> None:
        """Take the reasons of a node as stated, because they are shown elsewhere."""
        self._stated[node] = {_mask_digits(reason): reason for reason in reasons}

    def update(self, node: str, reasons: Iterable[str], now_s: float) -> tuple[list[str], list[str]]:
        """Return the reasons of a node that have newly lasted, and those that are gone for good."""
        stated = self._stated.setdefault(node, {})
        present = {_mask_digits(reason): reason for reason in reasons}
        new: list[str] = []
        gone: list[str] = []
        for key in {**stated, **present}:
            if (key in present) == (key in stated):
                self._changed_s.pop((node, key), None)
                continue
            lasted_s = now_s - self._changed_s.setdefault((node, key), now_s)
            if key in present and lasted_s >= NEW_AFTER_S:
                stated[key] = present[key]
                new.append(present[key])
            elif key not in present and lasted_s >= GONE_AFTER_S:
                gone.append(stated.pop(key))
        # A reason that went before it was stated has left nothing to wait for.
        ended = [pair for pair in self._changed_s if pair[0] == node and pair[1] not in {**stated, **present}]
        for pair in ended:
            del self._changed_s[pair]
        return new, gone


def _mask_digits(reason: str) -> str:
    return re.sub(r"\d+", "0", reason)
