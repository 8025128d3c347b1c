"""Answer the queries of a suite with the monitor's judge, in a separate thread."""

from typing import Any

from norm_nodes.base.convert import to_ros
from norm_nodes.base.endpoint import EVENTS
from norm_nodes.base.norm_node import NormNode

from norm_core.records.episode import Answer, Episode, Query
from norm_core.records.frame import Frame
from norm_core.records.outcome import Outcome
from norm_core.records.speech import Utterance
from norm_core.records.topics import ANSWERS_TOPIC
from norm_core.streams.bounded_queue import BoundedQueue, OverflowPolicy
from norm_core.streams.recent_records import RecentRecords
from sim_replays.suites.suite_questions import TASKS, SuiteAnswerer

# How many queries wait for the judge.
MAX_WAITING = 8
# How long the thread waits for a query before it checks whether to end.
WAIT_S = 0.2


class JudgeQueries:
    """Collect records and queue queries, each with the records that arrived before it."""

    def __init__(self, node: NormNode[Any], answerer: SuiteAnswerer, window_s: float) -> None:
        """Advertise answers, and start the answering thread."""
        self._node = node
        self._answerer = answerer
        self._recent = RecentRecords(window_s)
        self._jobs: BoundedQueue[Any] = node.health_log.queue("questions", MAX_WAITING, OverflowPolicy.REFUSE)
        self._answers = node.advertise(Answer, ANSWERS_TOPIC, EVENTS, "the judge's answers to queries")
        self._worker = node.start_worker("judge_queries", self._answer_queries)

    def close(self, timeout_s: float) -> None:
        """Stop answering, and drop the queries still in the queue."""
        self._jobs.close()
        self._worker.join(timeout=timeout_s)

    def receive(self, record: Any) -> None:
        """Collect a record of the episode, or queue a query about it."""
        if isinstance(record, Query):
            self._queue(record)
        elif isinstance(record, Frame | Utterance | Episode):
            self._recent.add(record)

    def _queue(self, query: Query) -> None:
        if query.task not in TASKS:
            return
        if not self._jobs.put((query, self._answerer.find_window(query, self._recent, self._node.clock))):
            self._publish(_make_failed_answer(query, f"judge: {MAX_WAITING} questions wait already; ask less often"))

    def _answer_queries(self) -> None:
        while not self._jobs.is_drained():
            if job := self._jobs.get(timeout_s=WAIT_S):
                query, (window, deadline) = job
                try:
                    answer = self._answerer.answer(query, window, deadline)
                except (RuntimeError, ValueError, MemoryError) as error:
                    answer = _make_failed_answer(query, f"{type(error).__name__}: {error}")
                self._publish(answer)

    def _publish(self, answer: Answer) -> None:
        self._node.health_log.count(f"queries_{answer.outcome}")
        self._answers.publish(to_ros(answer))


def _make_failed_answer(query: Query, reason: str) -> Answer:
    return Answer(
        stamp_ns=query.stamp_ns,
        query_id=query.query_id,
        episode_id=query.episode_id,
        task=query.task,
        outcome=Outcome.FAILED,
        reason=reason,
    )
