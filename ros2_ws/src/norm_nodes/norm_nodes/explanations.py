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
    """The last state of the latest events of a kind. One thread adds, callbacks look up, a lock keeps them apart."""

    def __init__(self, kind: str, max_events: int) -> None:
        self._lock, self._kind, self._max_events = Lock(), kind, max_events
        self._events: OrderedDict[str, E] = OrderedDict()

    def add(self, event_id: str, event: E) -> None:
        """Replace an event's state, and forget the oldest event beyond the limit."""
        with self._lock:
            self._events[event_id] = event
            self._events.move_to_end(event_id)
            if len(self._events) > self._max_events:
                self._events.popitem(last=False)

    def clear(self) -> None:
        """Forget all events."""
        with self._lock:
            self._events.clear()

    def find(self, event_id: str) -> tuple[E | None, str]:
        """Return the last state of an event, or None and what is held instead."""
        with self._lock:
            event, oldest = self._events.get(event_id), next(iter(self._events), "none")
            return event, f"the last {len(self._events)} {self._kind}, of which the oldest is {oldest}"


class Explanations:
    """The latest flags and decisions, explained on request."""

    def __init__(self) -> None:
        self.flags: RecentEvents[SocialFlag] = RecentEvents("flags", MAX_EVENTS)
        self.decisions: RecentEvents[Any] = RecentEvents("decisions", MAX_EVENTS)  # as messages

    def explain(self, request: Any, response: Any) -> Any:
        """Handle the service: say why an event was flagged or an action chosen."""
        flag, held_flags = self.flags.find(request.event_id)
        decision, held_decisions = self.decisions.find(request.event_id)
        response.found = True
        if flag:
            response.explanation, response.flag = explain(flag), [to_ros(flag)]
        elif decision:
            lines = filter(None, (decision.explanation, decision.trade_off))
            response.explanation, response.decision = "\n".join(lines), [decision]
        else:
            response.found = False
            response.explanation = f"no such event among {held_flags}, and {held_decisions}"
        return response
