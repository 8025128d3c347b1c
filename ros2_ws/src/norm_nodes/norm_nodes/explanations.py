"""The latest flags and decisions, and the service that explains one of them."""

from collections import OrderedDict
from threading import Lock
from typing import Any, Generic, TypeVar

from norm_core.records.flag import SocialFlag
from norm_monitor.assessment.explanation import explain
from norm_nodes.base.convert import to_ros

MAX_EVENTS = 1000
E = TypeVar("E")


class RecentEvents(Generic[E]):
    """The last state of the latest events of a kind, with a lock between the thread that adds and callbacks."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._events: OrderedDict[str, E] = OrderedDict()

    def add(self, event_id: str, event: E) -> None:
        """Replace the state of an event, and forget the oldest event beyond the limit."""
        with self._lock:
            self._events[event_id] = event
            self._events.move_to_end(event_id)
            if len(self._events) > MAX_EVENTS:
                self._events.popitem(last=False)

    def clear(self) -> None:
        """Forget all events."""
        with self._lock:
            self._events.clear()

    def all(self) -> list[E]:
        """Return the last states of the latest events."""
        with self._lock:
            return list(self._events.values())

    def find(self, event_id: str) -> E | None:
        """Return the last state of an event; None if it is not among the latest."""
        with self._lock:
            return self._events.get(event_id)


class Explanations:
    """The latest flags and decisions, explained on request."""

    def __init__(self) -> None:
        self.flags: RecentEvents[SocialFlag] = RecentEvents()
        self.decisions: RecentEvents[Any] = RecentEvents()  # as messages

    def explain(self, request: Any, response: Any) -> Any:
        """Handle the service: explain why an event was flagged or an action chosen."""
        response.found = True
        if flag := self.flags.find(request.event_id):
            response.explanation = explain(flag)
            response.flag = [to_ros(flag)]
        elif decision := self.decisions.find(request.event_id):
            response.explanation = "\n".join(filter(None, (decision.explanation, decision.trade_off)))
            response.decision = [decision]
        else:
            response.found = False
            response.explanation = f"there is no such event among the last {MAX_EVENTS} flags and decisions"
        return response
