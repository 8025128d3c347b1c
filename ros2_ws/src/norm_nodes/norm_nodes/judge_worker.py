"""The thread that asks the judge: units and notes come in from one queue, answers go out to another."""

import traceback
from typing import Any

from norm_core.engines.request_context import Deadline
from norm_core.records.outcome import Outcome
from norm_core.runtime.time import s_to_ns
from norm_core.streams.bounded_queue import BoundedQueue
from norm_monitor.assessment.unit import UnitJudgement
from norm_monitor.judge.excerpt import UnitView
from norm_monitor.judge.judge import Judge, NoteAnswer, NoteRequest
from norm_nodes.base.norm_node import NormNode

# How long the thread waits for a request before it checks whether to end.
WAIT_S = 0.2
FASTER_JUDGE = "; raise judge.deadline_s, or name a faster model in judge.model"


class JudgeWorker:
    """Ask the judge about one unit or note after another, each within `judge.deadline_s` of the node's parameters."""

    def __init__(
        self,
        node: NormNode[Any],
        judge: Judge,
        requests: BoundedQueue[UnitView | NoteRequest],
        answers: BoundedQueue[Any],
    ) -> None:
        self._node = node
        self._judge = judge
        self._requests = requests
        self._answers = answers

    def answer_requests(self) -> None:
        """Answer requests until their queue is closed. Each gets an answer, as the monitor waits for it."""
        while not self._requests.is_drained():
            request = self._requests.get(timeout_s=WAIT_S)
            if request is None:
                continue
            clock = self._node.clock
            deadline = Deadline(clock, clock.now_ns() + s_to_ns(self._node.config.judge.deadline_s))
            answer = self._answer(request, deadline)
            if isinstance(answer, NoteAnswer):
                self._node.health_log.count(f"judge_note_{answer.outcome}")
                self._answers.put_order(answer)
            else:
                self._node.health_log.count(f"judge_{answer.outcome}")
                self._answers.put_order(answer)
                self._state_failure(answer)

    def _answer(self, request: UnitView | NoteRequest, deadline: Deadline) -> UnitJudgement | NoteAnswer:
        try:
            if isinstance(request, NoteRequest):
                return self._judge.write_note(request, deadline)
            return self._judge.judge(request, deadline)
        except Exception as error:  # noqa: BLE001  one unit or note that the judge fails at must not end it
            self._node.get_logger().error(traceback.format_exc())
            if isinstance(request, NoteRequest):
                return NoteAnswer(judgement=request.judgement, outcome=Outcome.FAILED, reason=repr(error))
            return UnitJudgement(unit=request.unit, outcome=Outcome.FAILED, reason=repr(error))

    def _state_failure(self, judgement: UnitJudgement) -> None:
        """State why a unit got no judgement, at once; clear that after the next that does."""
        if judgement.outcome is Outcome.ANSWERED:
            self._node.health_log.clear_issue("judge")
            return
        why = f"judge: the model {judgement.outcome.predicate}, and cues go on alone: {judgement.reason}"
        if judgement.outcome is Outcome.TIMED_OUT:
            why += FASTER_JUDGE
        self._node.health_log.state_issue("judge", why)
        self._node.beat()
