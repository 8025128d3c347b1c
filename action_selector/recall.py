"""What was lately seen and heard, for whoever is asked what to do next: the same in a node and in a replay."""

from action_selector.decider import Decider
from action_selector.queries import answer_of, request_of
from action_selector.request import Request
from norm_core.engines.request_context import Limit
from norm_core.records.decision import Decision
from norm_core.records.episode import Answer, Query
from norm_core.runtime.recent_records import Recent
from norm_core.runtime.time import Clock, ReplayClock


class Recall(Recent):
    """What was lately seen and heard, as the requests of those who ask."""

    def asked(self, query: Query, clock: Clock) -> tuple[Request, Limit]:
        """The request that a query makes now, and how long it may take.

        Without a deadline time stands still at the query's stamp, so that a replay decides as the robot did.
        """
        clock = clock if query.deadline_ns is not None else ReplayClock(query.stamp_ns)
        window = self.window(query.stamp_ns, clock.now_ns())
        source = query.frame_id or query.episode_id
        return request_of(query, window, source=source), Limit(clock, query.deadline_ns)


def answered(decider: Decider, recall: Recall, query: Query, clock: Clock) -> tuple[Decision, Answer]:
    """What the selector decides on a query, and what that says to its task."""
    decision = decider.decide(*recall.asked(query, clock))
    return decision, answer_of(decision, query)
