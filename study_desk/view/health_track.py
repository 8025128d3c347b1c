"""The health of the nodes over time, from their heartbeats."""

import re

from norm_core.records.status import MonitorStatus
from study_desk.report.page_items import Item

MOST_NODES = 100
_FRESH_MS = 60_000  # an unchanged health is stated again, so that nobody forgets it while the node lives


class HealthTrack:
    """Merge heartbeats into stretches of one health per node."""

    def __init__(self) -> None:
        self._latest: dict[str, Item] = {}  # by node
        self._count = 0

    def take(self, status: MonitorStatus, known: float) -> tuple[Item, bool] | None:
        """Return the stretch that a heartbeat changed, and whether it is a new one. Other digits make none."""
        said = {
            "node": status.node,
            "state": status.state.value,
            "health": status.health.value,
            "reasons": list(status.reasons),
            "notes": list(status.notes),
        }
        before = self._latest.get(status.node)
        if before is None and len(self._latest) >= MOST_NODES:
            return None
        if before and _without_digits(before) == _without_digits(said):
            if before["end"] + _FRESH_MS > known and all(before[name] == value for name, value in said.items()):
                return None
            item, is_new = {**before, **said, "end": known}, False
        else:
            self._count += 1
            item, is_new = {"id": f"health-{self._count}", "start": known, "end": known, **said}, True
        self._latest[status.node] = item
        return item, is_new


def _without_digits(said: Item) -> list[str]:
    texts = [said["state"], said["health"], *said["reasons"], *said["notes"]]
    return [re.sub(r"\d+", "0", text) for text in texts]
