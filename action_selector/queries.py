"""Queries of a benchmark as requests, and decisions as their answers."""

from action_selector.request import Request
from norm_core.records.decision import Decision
from norm_core.records.episode import Answer, Query
from norm_core.records.outcome import Outcome
from norm_core.records.window import Window

# Tasks that ask for the chosen action.
ACTION_TASKS = ("eas", "action")
JUSTIFICATION_TASK = "justification"
SENSIBLE_TASK = "sensible"
TASKS = (*ACTION_TASKS, JUSTIFICATION_TASK, SENSIBLE_TASK)


def convert_query(query: Query, window: Window | None = None, *, source: str = "") -> Request:
    """Convert a query to a request. The options are actions, whichever task is asked."""
    return Request(
        query_id=query.query_id,
        task=query.task,
        candidates=query.options,
        justifications=query.justifications,
        question=query.question,
        style=query.style or "default",
        others=query.others if query.others_given else None,
        viewpoint=query.viewpoint if query.viewpoint_given else None,
        source=source,
        window=window,
    )


def extract_answer(decision: Decision, query: Query) -> Answer:
    """Extract the answer to the query's task. The task `sensible` has an answer even without a choice."""
    outcome = decision.outcome
    chosen = _choose_indexes(decision, query.task)
    if query.task == JUSTIFICATION_TASK and outcome is Outcome.ANSWERED and not chosen:
        outcome = Outcome.INVALID
    is_answered = outcome is Outcome.ANSWERED
    return Answer(
        stamp_ns=decision.stamp_ns,
        query_id=query.query_id,
        episode_id=query.episode_id,
        task=query.task,
        outcome=outcome,
        chosen=chosen if is_answered else (),
        probabilities=tuple(candidate.probability for candidate in decision.candidates)
        if query.task in ACTION_TASKS
        else (),
        reason="" if is_answered else decision.explanation or "no justifications were offered",
        provenance=decision.provenance,
    )


def _choose_indexes(decision: Decision, task: str) -> tuple[int, ...]:
    """Select the indexes of a decision that answer a task."""
    if task == SENSIBLE_TASK:
        return decision.sensible
    index = decision.justification_index if task == JUSTIFICATION_TASK else decision.chosen_index
    return () if index is None else (index,)
