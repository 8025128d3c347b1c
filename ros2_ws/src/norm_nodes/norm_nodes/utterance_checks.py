"""Serve CheckUtterance from a thread of its own, which follows the talk once it was asked."""

from collections.abc import Callable
from threading import Thread
from typing import Any

from norm_core.records.flag import Attribute, Polarity
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
        if not self._is_active():
            response.reason = "monitor: the node is not active; activate it"
            send()
        elif not self._jobs.put((request.text, response, send)):
            response.reason = f"monitor: {WAITING} utterances wait already; ask less often"
            send()

    def _work(self) -> None:
        is_asked = False
        while not self._jobs.is_drained():
            job = self._jobs.get(timeout_s=WAIT_S)
            if job is None:
                if is_asked:
                    self._check.follow(self.talk, self._node.clock.now_ns())
                continue
            is_asked = True
            text, response, send = job
            try:
                self._fill(response, text)
            except (TactfulError, RuntimeError, ValueError, MemoryError) as error:
                response.reason = str(error)
            send()

    def _fill(self, response: Any, text: str) -> None:
        read = self._check.check(text, self.talk, self._node.clock.now_ns())
        response.checked, response.reason, response.shadow = True, read.reason, self._shadow
        response.advised_against = read.is_advised_against and not self._shadow
        response.error, response.competence = read.probability[Polarity.ERROR], read.probability[Polarity.COMPETENCE]
        response.least_probability = read.least_probability
        response.attributes = [list(Attribute).index(name) for name in read.attributes]
        response.attribute_probabilities = list(read.attributes.values())
        response.correction, response.read_by = read.correction, read.read_by
        self._node.count("utterances_checked")
        if read.is_advised_against:
            self._node.count("utterances_advised_against")
