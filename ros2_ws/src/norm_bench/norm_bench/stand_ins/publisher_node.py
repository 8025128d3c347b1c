"""The base class of nodes that publish from a thread: players, and devices of this machine."""

from threading import Event, Thread
from typing import TypeVar

from norm_nodes.base.norm_node import NormNode

from norm_core.runtime.config import Config

C = TypeVar("C", bound=Config)

# How long deactivation waits for the thread.
STOP_TIMEOUT_S = 5.0


class PublisherNode(NormNode[C]):
    """Run `publish_until_halted` in a thread from activation to deactivation."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.halt = Event()
        self._thread: Thread | None = None

    def publish_until_halted(self) -> None:
        """Publish until `halt` is set. Every wait is a wait for `halt`."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the thread."""
        self.halt.clear()
        self._thread = Thread(target=self.publish_until_halted, name=self.get_name(), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self.halt.set()
        if self._thread:
            self._thread.join(STOP_TIMEOUT_S)
