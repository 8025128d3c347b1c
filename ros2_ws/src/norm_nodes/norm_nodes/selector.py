"""Recommends the robot's next action to whoever asks, by action or by query. Advice: it never actuates."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from threading import Thread
from typing import Annotated, Any

from norm_interfaces.action import SelectAction
from pydantic import AfterValidator, Field
from rclpy.action import CancelResponse, GoalResponse
from rclpy.task import Future
from std_msgs.msg import String

from action_selector.queries import TASKS, answer_of
from action_selector.recall import Recall
from action_selector.request import Request
from action_selector.selector_factory import SelectorFiles, open_selector
from norm_core.engines.errors import EngineError
from norm_core.engines.request_context import Limit
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.engines.shared_engine import Urgency
from norm_core.records.decision import Decision, OtherAgent, Viewpoint
from norm_core.records.episode import Answer, Episode, Query
from norm_core.records.frame import Frame
from norm_core.records.json_codec import to_json
from norm_core.records.messages import MessageError
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Presence
from norm_core.records.speech import Utterance
from norm_core.records.status import Health
from norm_core.records.window import Window
from norm_core.runtime.bounded_queue import BoundedQueue, Policy
from norm_core.runtime.config import ConfigError
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.held_queries import HeldQueries
from norm_core.runtime.time import s_to_ns
from norm_core.runtime.watermarks import SOURCES, known_sources
from norm_nodes.convert import TypeMissingError, from_ros, to_ros
from norm_nodes.endpoint import EVENTS
from norm_nodes.intent import intent_class, intent_of
from norm_nodes.norm_node import NormNode

WAITING = 8
WAIT_S = 0.2


class SelectorNodeConfig(SelectorFiles):
    window_s: float = Field(default=15.0, gt=0, le=600, description="how much of the past is looked at")
    longest_s: float = Field(default=10.0, gt=0, le=600, description="time for a goal whose deadline is 0 or -1")
    sources: Annotated[tuple[str, ...], AfterValidator(known_sources)] = Field(
        default=(), description=f"what a query without a deadline waits for, of {', '.join(SOURCES)}; () to ask at once"
    )
    frames_every_s: float = Field(default=1.0, gt=0, le=60, description="period of kept frames and of presence")
    intent: bool = Field(default=False, description="whether decisions also go out as REP-155 intents")


@dataclass(frozen=True)
class _Job:
    """A question, how long it may take, who hears of its steps, and who gets the decision."""

    request: Request
    limit: Limit
    told: Callable[[str], None]
    done: Callable[[Decision], None]


class SelectorNode(NormNode[SelectorNodeConfig]):
    """Answers SelectAction goals and queries from a thread of its own; callbacks only queue and await."""

    config_model = SelectorNodeConfig

    def __init__(self) -> None:
        super().__init__("selector")
        self._active = False

    def open(self) -> None:
        config = self.config
        try:
            encoder = SentenceEncoder()
            self._engine = self.lease_engine(config.model, Urgency.ACTION) if config.model else None
            self._selector = open_selector(config, encoder, encoder.weights_sha256, self._engine)
        except TactfulError as error:
            raise ConfigError(f"selector: {error}") from error
        self._recall = Recall(config.window_s)
        self._waiting = HeldQueries(config.sources, s_to_ns(config.frames_every_s))
        self._jobs: BoundedQueue[_Job] = self.bounded_queue("questions", WAITING, Policy.REFUSE)
        self._limits: dict[bytes, Limit] = {}
        self._decisions = self.offer(Decision, "decisions", EVENTS, "every decision, whoever asked")
        self._answers = self.offer(Answer, "answers", EVENTS, "what decisions say to queries")
        self._mirror = self.offer(String, "decisions_json", EVENTS, "every decision as one line of JSON")
        self._intents = self._offer_intents() if config.intent else None
        self.listen(Frame, "frames", self._take(Frame), EVENTS, "kept frames")
        self.listen(Utterance, "utterances", self._take(Utterance), EVENTS, "who said what")
        self.listen(Presence, "presence", self._take(Presence), EVENTS, "who is there, by the robot's own recognisers")
        self.listen(Episode, "episodes", self._take(Episode), EVENTS, "where a replayed item begins")
        self.listen(Query, "queries", self._on_query, EVENTS, "questions of replayed suites about actions")
        self.act(
            SelectAction,
            "select_action",
            self._execute,
            "recommends one of the candidates; advice only",
            accept=self._accept,
            cancel=self._cancel,
        )
        self._worker = Thread(target=self._work, name="selector", daemon=True)
        self._worker.start()

    def start(self) -> None:
        self._active = True

    def stop(self) -> None:
        self._active = False
        self.count("queries_given_up", len(self._waiting.release()))

    def close(self) -> None:
        self._jobs.close()
        for limit in list(self._limits.values()):
            limit.cancel()
        self._worker.join(timeout=self.config.longest_s)

    def _accept(self, goal: Any) -> GoalResponse:
        if self._active:
            return GoalResponse.ACCEPT
        self.count("goals_refused_inactive")
        return GoalResponse.REJECT

    def _cancel(self, handle: Any) -> CancelResponse:
        if limit := self._limits.get(bytes(handle.goal_id.uuid)):
            limit.cancel()
        return CancelResponse.ACCEPT

    async def _execute(self, handle: Any) -> Any:
        goal, key = handle.request, bytes(handle.goal_id.uuid)
        now_ns = self.clock.now_ns()
        deadline_ns = goal.deadline_ns if goal.deadline_ns not in {0, -1} else now_ns + s_to_ns(self.config.longest_s)
        limit = self._limits[key] = Limit(self.clock, deadline_ns)
        future: Future = Future(executor=self.executor)

        def told(step: str) -> None:
            feedback = SelectAction.Feedback(step=step, remaining_ns=deadline_ns - self.clock.now_ns())
            self._later(lambda: handle.publish_feedback(feedback))

        try:
            request = _request_of_goal(goal, key.hex(), self._recall.window(now_ns, now_ns))
            # The future is set within the executor: set from the worker, it would wake nobody.
            job = _Job(request, limit, told, lambda decision: self._later(lambda: future.set_result(decision)))
            decision = await future if self._jobs.put(job) else self._refused(request, limit)
        except MessageError as error:
            decision = _unusable(key.hex(), now_ns, deadline_ns, str(error))
        finally:
            del self._limits[key]
        self._publish(decision)
        if handle.is_cancel_requested:
            handle.canceled()
        else:
            handle.succeed()
        return SelectAction.Result(decision=to_ros(decision))

    def _on_query(self, message: Any) -> None:
        try:
            query = from_ros(Query, message)
        except MessageError as error:
            self.count("queries_refused")
            self.trouble("queries", Health.DEGRADED, str(error))
            return
        if self._active and query.task in TASKS:
            self._ask_all(self._waiting.take(query))

    def _ask_all(self, queries: list[Query]) -> None:
        for query in queries:
            self._ask(query)

    def _ask(self, query: Query) -> None:
        request, limit = self._recall.asked(query, self.clock)

        def done(decision: Decision) -> None:
            self._later(lambda: self._answer(decision, query))

        if not self._jobs.put(_Job(request, limit, lambda step: None, done)):
            self._answer(self._refused(request, limit), query)

    def _answer(self, decision: Decision, query: Query) -> None:
        self._publish(decision)
        self._answers.publish(to_ros(answer_of(decision, query)))

    def _work(self) -> None:
        # The encoder loads with its first sentence, and on a busy machine that takes seconds.
        self.trouble("encoder", Health.DEGRADED, "the sentence encoder is being loaded: the first answer waits for it")
        try:
            self._selector.prepare()
            self.mended("encoder")
            self.get_logger().info("the sentence encoder is ready")
        except EngineError as error:
            self.trouble("encoder", Health.FAILED, str(error))
        while not self._jobs.is_drained():
            if job := self._jobs.get(timeout_s=WAIT_S):
                job.done(self._decided(job))

    def _decided(self, job: _Job) -> Decision:
        try:
            with self._engine.hold() if self._engine else nullcontext():
                return self._selector.decide(job.request, job.limit, job.told)
        except (RuntimeError, ValueError, MemoryError) as error:
            self.count("decisions_failed")
            self.trouble("selector", Health.DEGRADED, f"a decision failed: {type(error).__name__}: {error}")
            decision = self._refused(job.request, job.limit)
            return replace(decision, outcome=Outcome.FAILED, explanation=f"{type(error).__name__}: {error}")

    def _refused(self, request: Request, limit: Limit) -> Decision:
        reason = f"{WAITING} questions wait already: ask less often"
        return replace(
            _unusable(request.query_id, limit.clock.now_ns(), limit.deadline_ns, reason), outcome=Outcome.FAILED
        )

    def _publish(self, decision: Decision) -> None:
        self.count(f"decisions_{decision.outcome}")
        self._decisions.publish(to_ros(decision))
        self._mirror.publish(String(data=to_json(decision)))
        if self._intents and decision.outcome is Outcome.ANSWERED and decision.chosen:
            self._intents.publish(intent_of(decision, self._intents.msg_type))

    def _take(self, record_type: type) -> Callable[[Any], None]:
        def take(message: Any) -> None:
            try:
                record = from_ros(record_type, message)
                self._recall.take(record)
                self._ask_all(self._waiting.take(record))
            except MessageError as error:
                self.count("messages_refused")
                self.trouble("messages", Health.DEGRADED, str(error))

        return take

    def _later(self, step: Callable[[], None]) -> None:
        """Runs step among the callbacks; nothing where the node is no longer spun."""
        if self.executor is not None:
            self.executor.create_task(step)

    def _offer_intents(self) -> Any:
        try:
            return self.offer(intent_class(), "/intents", EVENTS, "decisions as REP-155 intents")
        except TypeMissingError as error:
            self.trouble("intents", Health.DEGRADED, f"no intents are published: {error}")
            return None


def _request_of_goal(goal: Any, goal_id: str, window: Window | None) -> Request:
    return Request(
        query_id=goal.query_id or goal_id,
        candidates=tuple(goal.candidates),
        justifications=tuple(goal.justifications),
        situation=goal.situation,
        facts=tuple(goal.facts),
        others=tuple(from_ros(OtherAgent, other) for other in goal.others) if goal.others_given else None,
        viewpoint=from_ros(Viewpoint, goal.viewpoint) if goal.viewpoint_given else None,
        window=window,
    )


def _unusable(query_id: str, now_ns: int, deadline_ns: int | None, reason: str) -> Decision:
    return Decision(
        stamp_ns=now_ns,
        decision_id=f"{query_id}@{now_ns}",
        query_id=query_id,
        outcome=Outcome.INVALID,
        explanation=reason,
        deadline_ns=deadline_ns,
        decided_ns=now_ns,
    )
