"""Serve CheckUtterance from a thread of its own, which follows the talk once it was asked."""

from collections.abc import Callable
from threading import Thread
from typing import Any

from norm_core.records.flag import Attribute
from norm_core.runtime.bounded_queue import BoundedQueue, OverflowPolicy
from norm_core.runtime.errors import TactfulError
from norm_monitor.utterance_check import TalkSoFar, UtteranceCheck
from norm_nodes.norm_node import NormNode

try:
    from norm_interfaces.srv import CheckUtterance
except ImportError:  # messages that were built before this service
    CheckUtterance = None
IS_BUILT = CheckUtterance is not None

WAITING, WAIT_S = 8, 0.2


class UtteranceChecks:
    """Tell how what the robot is about to say would read, by the talk that `talk` takes."""

    def __init__(
        self, node: NormNode[Any], check: UtteranceCheck, is_active: Callable[[], bool], *, shadow: bool
    ) -> None:
        """Serve it, and start the thread."""
        self._node, self._check, self._is_active, self._shadow = node, check, is_active, shadow
        self.talk = TalkSoFar()
        self._jobs: BoundedQueue[Any] = node.bounded_queue("utterance_checks", WAITING, OverflowPolicy.REFUSE)
        about = "how what the robot is about to say would read"
        node.serve_later(CheckUtterance, "check_utterance", self._begin, about)
        self._worker = Thread(target=self._work, name="utterance_checks", daemon=True)
        self._worker.start()

    def forget(self) -> None:
        """Forget what was said."""
        self.talk.forget()
        self._check.forget()

    def close(self, timeout_s: float) -> None:
        """Stop answering."""
        self._jobs.close()
        self._worker.join(timeout=timeout_s)

    def _begin(self, request: Any, response: Any, send: Callable[[], None]) -> None:
        response.reason = f"monitor: {WAITING} utterances wait already; ask less often"
        if not self._is_active():
            response.reason = "monitor: the node is not active; activate it"
        elif self._jobs.put((request.text, response, send)):
            return
        send()

    def _work(self) -> None:
        is_asked = False
        while not self._jobs.is_drained():
            if job := self._jobs.get(timeout_s=WAIT_S):
                is_asked = True
                text, response, send = job
                try:
                    self._fill(response, text)
                except (TactfulError, RuntimeError, ValueError, MemoryError) as error:
                    response.reason = f"{type(error).__name__}: {error}"
                send()
            elif is_asked:
                self._check.follow(self.talk, self._node.clock.now_ns())

    def _fill(self, response: Any, text: str) -> None:
        read = self._check.check(text, self.talk, self._node.clock.now_ns())
        for name in ("error", "competence", "advised_against_from", "reason", "correction", "read_by"):
            setattr(response, name, getattr(read, name))
        response.checked, response.shadow = True, self._shadow
        response.advised_against = read.advised_against and not self._shadow
        response.attributes = [list(Attribute).index(name) for name in read.attributes]
        response.attribute_probabilities = list(read.attributes.values())
        self._node.count("utterances_advised_against", int(read.advised_against))
        self._node.count("utterances_checked")
