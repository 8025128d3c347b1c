"""Serve CheckUtterance, as a service and an action.

The executor's thread begins and ends requests. A further thread reads texts, and follows the talk after the first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from norm_interfaces.action import CheckUtterance as CheckUtteranceAction
from norm_interfaces.msg import Outcome
from norm_interfaces.msg import UtteranceCheck as UtteranceCheckMessage
from norm_interfaces.srv import CheckUtterance

from norm_core.records.flag import Attribute
from norm_core.runtime.time import ns_to_s
from norm_core.streams.bounded_queue import BoundedQueue, OverflowPolicy
from norm_monitor.utterance_check import TalkSoFar, UtteranceCheck, UtteranceCheckError
from norm_nodes.base.goal_server import read_deadline
from norm_nodes.base.norm_node import NormNode

# How many texts wait to be read.
MAX_WAITING = 8
# How long the thread waits for a text before it follows the talk.
WAIT_S = 0.2
# How long a goal without a deadline may take.
MAX_CHECK_S = 10.0


def _problem(outcome: int, text: str) -> dict[str, Any]:
    return {"error_code": outcome, "error_msg": text}


LATE = _problem(Outcome.TIMED_OUT, "monitor: the utterance was not read by its deadline; give it more time")
INACTIVE = _problem(Outcome.FAILED, "monitor: the node is not active; activate it")
CANCELLED = _problem(Outcome.CANCELLED, "monitor: the goal was cancelled")
BUSY = _problem(Outcome.BUSY, f"monitor: {MAX_WAITING} utterances wait already; ask less often")
ABOUT = "how the robot's next words would come across"


@dataclass(eq=False)
class _Request:
    """A text to check, the response or result to fill, and the function that sends it; of a goal also the handle."""

    text: str
    answer: Any
    send: Callable[[], object]
    handle: Any = None
    timer: Any = None  # ends a goal at its deadline

    def publish_waiting(self, waiting: int) -> None:
        """Publish as feedback how many are read before it."""
        if self.handle:
            self.handle.publish_feedback(CheckUtteranceAction.Feedback(waiting=waiting))

    def end(self, fields: dict[str, Any]) -> None:
        """Fill the answer and send it."""
        for name, value in fields.items():
            setattr(self.answer, name, value)
        self.send()


class UtteranceChecks:
    """Check how the robot's next words would come across, after the talk that `talk` collects."""

    def __init__(self, node: NormNode[Any], check: UtteranceCheck, *, shadow: bool) -> None:
        """Serve both, and start the thread."""
        self._node = node
        self._check = check
        self._shadow = shadow
        self.talk = TalkSoFar()
        self._queue: BoundedQueue[_Request] = node.health_log.queue(
            "utterance_checks", MAX_WAITING, OverflowPolicy.REFUSE
        )
        self._open_requests: list[_Request] = []  # the first is being read
        node.serve_later(
            CheckUtterance, "check_utterance", lambda request, *rest: self._begin(_Request(request.text, *rest)), ABOUT
        )
        self._goals = node.serve_action(
            CheckUtteranceAction,
            "check_utterance",
            self._begin_goal,
            "the same check, with a deadline and cancellation",
            cancel=self._cancel,
        )
        self._worker = node.start_worker("utterance_checks", self._read_texts)

    def forget(self) -> None:
        """Forget the talk."""
        self.talk.forget()
        self._check.forget()

    def stop(self) -> None:
        """Answer the open requests, while the executor still sends responses."""
        for request in list(self._open_requests):
            self._end(request, INACTIVE)

    def close(self, timeout_s: float) -> None:
        """Stop answering."""
        self._queue.close()
        self.stop()
        self._worker.join(timeout=timeout_s)

    def _begin(self, request: _Request) -> None:
        if not self._node.is_active:
            request.end(INACTIVE)
            return
        self._open_requests.append(request)  # before the queue, because the thread skips requests that are not open
        if self._queue.put(request):
            request.publish_waiting(len(self._open_requests) - 1)
        else:
            self._open_requests.remove(request)
            request.end(BUSY)

    def _end(self, request: _Request, fields: dict[str, Any]) -> None:
        """Send an answer, unless the request ended before."""
        if request in self._open_requests:
            self._open_requests.remove(request)
            self._queue.withdraw(request)
            request.end(fields)
            for waiting, other in enumerate(self._open_requests):
                other.publish_waiting(waiting)

    def _begin_goal(self, handle: Any) -> None:
        deadline_ns, now_ns = read_deadline(handle.request), self._node.clock.now_ns()
        remaining_s = MAX_CHECK_S if deadline_ns is None else max(0.0, ns_to_s(deadline_ns - now_ns))
        request = _Request(handle.request.text, CheckUtteranceAction.Result(), lambda: self._end_goal(request), handle)
        request.timer = self._node.create_timer(remaining_s, partial(self._end, request, LATE))
        self._begin(request)
        if not remaining_s:
            self._end(request, LATE)

    def _end_goal(self, request: _Request) -> None:
        self._node.destroy_timer(request.timer)
        handle, result = request.handle, request.answer
        is_cancelled = handle.is_cancel_requested
        state = handle.canceled if is_cancelled else handle.succeed if result.check.checked else handle.abort
        self._goals.end(handle, state, result)

    def _cancel(self, handle: Any) -> None:
        for request in [request for request in self._open_requests if request.handle is handle]:
            self._end(request, CANCELLED)

    def _read_texts(self) -> None:
        has_read_text = False
        while not self._queue.is_drained():
            if request := self._queue.get(timeout_s=WAIT_S):
                has_read_text = True
                if request in self._open_requests:
                    self._node.run_later("check_utterance", self._end, request, self._read_text(request.text))
            elif has_read_text:
                self._follow()

    def _follow(self) -> None:
        problem = ""
        try:
            self._check.follow(self.talk, self._node.clock.now_ns())
        except Exception as error:  # noqa: BLE001  a reader may raise anything, and the thread must answer what comes
            problem = f"check_utterance: the talk is not read ahead: {error}; checks take longer; see reader"
        self._node.health_log.state_issue("utterance_checks", problem)

    def _read_text(self, text: str) -> dict[str, Any]:
        try:
            reading = self._check.check(text, self.talk, self._node.clock.now_ns())
        except Exception as error:  # noqa: BLE001  a reader may raise anything, and the thread must answer the next
            is_invalid = isinstance(error, UtteranceCheckError)
            return _problem(Outcome.INVALID if is_invalid else Outcome.FAILED, f"{type(error).__name__}: {error}")
        self._node.health_log.count("utterances_advised_against", int(reading.advised_against))
        self._node.health_log.count("utterances_checked")
        names = ("error", "competence", "advised_against_from", "reason", "correction", "read_by")
        check = UtteranceCheckMessage(
            checked=True,
            shadow=self._shadow,
            advised_against=reading.advised_against and not self._shadow,
            attributes=[list(Attribute).index(name) for name in reading.attributes],
            attribute_probabilities=list(reading.attributes.values()),
            **{name: getattr(reading, name) for name in names},
        )
        return {"check": check}
