"""The items of one kind in a viewer's timeline, bounded, in the order of their last change."""

from collections import OrderedDict

from study_desk.report.page_items import Item


class ItemStore:
    """Items by id. Each keeps the version of its last change."""

    def __init__(self, most: int) -> None:
        self.items: OrderedDict[str, Item] = OrderedDict()
        self.dropped = 0
        self._versions: dict[str, int] = {}
        self._most = most

    def put(self, item: Item, version: int) -> None:
        """Add or replace an item; the item that changed longest ago makes room."""
        name = item["id"]
        self.items[name] = item
        self.items.move_to_end(name)
        self._versions[name] = version
        if len(self.items) > self._most:
            self._drop()
            self.dropped += 1

    def since(self, version: int) -> list[Item]:
        """Return copies of what changed after a version, in the order of change."""
        found = []
        for name in reversed(self.items):
            if self._versions[name] <= version:
                break
            found.append(dict(self.items[name]))
        return found[::-1]

    def forget(self, before: float) -> None:
        """Drop what ended earlier, oldest change first."""
        while self.items and next(iter(self.items.values()))["end"] < before:
            self._drop()

    def _drop(self) -> None:
        name, _ = self.items.popitem(last=False)
        del self._versions[name]
