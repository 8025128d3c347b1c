"""What viewers set in the monitor, and what of it a restart of the monitor lost."""

from collections.abc import Mapping
from typing import Any


class ChosenSettings:
    """Values by parameter. A value that somebody else changes is no longer a viewer's."""

    def __init__(self) -> None:
        self._instance = ""
        self._chosen: dict[str, Any] = {}
        self.lost: dict[str, Any] = {}

    def choose(self, name: str, value: Any) -> None:
        """Take that a viewer set a value."""
        self._chosen[name] = value
        self.lost.pop(name, None)

    def read(self, instance: str, values: Mapping[str, Any]) -> None:
        """Take the values of an instance of the monitor; another instance has lost those that differ."""
        if instance != self._instance:
            self._instance = instance
            self.lost |= self._chosen
        self._chosen = {name: value for name, value in self._chosen.items() if _equal(values.get(name), value)}
        self.lost = {name: value for name, value in self.lost.items() if not _equal(values.get(name), value)}

    def forget_lost(self) -> None:
        """Leave the monitor's own values."""
        self.lost = {}


def _equal(value: Any, other: Any) -> bool:
    return sorted(value or ()) == sorted(other) if isinstance(other, list) else bool(value == other)
