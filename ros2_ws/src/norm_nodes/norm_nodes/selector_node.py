"""The selector node: recommend the robot's next action. It never actuates."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

from norm_interfaces.action import SelectAction
from rclpy.duration import Duration
from std_msgs.msg import Empty, String

from action_selector.request import Request
from action_selector.selector import DueRequest, Recommendation, SelectorFiles, SelectorRecord, open_selector
from action_selector.selector_config import RequestConfig
from norm_core.engines.engine_pool import Urgency
from norm_core.engines.errors import EngineError
from norm_core.health.node_watch import release_freed_memory
from norm_core.records.decision import Decision, OtherAgent, Viewpoint
from norm_core.records.episode import Query
from norm_core.records.frame import Frame
from norm_core.records.json_codec import to_json
from norm_core.records.messages import MessageError
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Presence
from norm_core.records.speech import Utterance
from norm_core.records.status import Health
from norm_core.records.text_limits import cut_texts
from norm_core.records.topics import (
    DECISIONS_JSON_TOPIC,
    DECISIONS_TOPIC,
    FRAMES_TOPIC,
    PRESENCE_TOPIC,
    SENSES_ENDED_TOPIC,
    UTTERANCES_TOPIC,
)
from norm_core.runtime.config import ConfigError
from norm_core.runtime.errors import TactfulError
from norm_core.streams.bounded_queue import BoundedQueue, OverflowPolicy
from norm_nodes.base.convert import from_ros, to_ros
from norm_nodes.base.endpoint import EVENTS, SPEECH
from norm_nodes.base.goal_server import read_deadline
from norm_nodes.base.norm_node import NodeConfig, NormNode

# How many requests wait for a decision.
MAX_WAITING = 8
# How long the thread waits for a request before it checks for a new configuration.
WAIT_S = 0.2
FAILURE = "selector: the decision raised an error, which its log shows; report it"
TOO_MANY = f"{MAX_WAITING} questions wait already: ask less often"
LATE = "the deadline passed while others were decided; ask less often, or give it more time"
INACTIVE = "selector: the node is not active; activate it"
CANCELLED = "the goal was cancelled"


class SelectorNodeConfig(NodeConfig, RequestConfig, SelectorFiles):
    """The parameters of the node selector."""


@dataclass(eq=False)
class _Job:
    """A request, and the handle of its goal where it is one."""

    due: DueRequest
    handle: Any = None
    timer: Any = None  # ends the request at its deadline if it still waits then


class SelectorNode(NormNode[SelectorNodeConfig]):
    """Recommend actions, as an action server."""

    # norm_bench extends `subscribe_senses` and `publish`.
    config_model = SelectorNodeConfig

    def __init__(self) -> None:
        super().__init__("selector")

    def check(self, config: SelectorNodeConfig) -> None:
        """Read the files that may change while the node runs."""
        config.read_catalogue()
        config.read_rules()

    def get_model_name(self) -> str:
        """Return the name of the model that is asked."""
        return self.config.model

    def open(self) -> None:
        """Lease the engine, load the selector's files, serve goals, and start the thread."""
        config = self._applied = self.config
        try:
            self._engine = self.engines.lease(config.model, Urgency.ACTION) if config.model else None
            self._selector = open_selector(
                config.part(SelectorFiles),  # a node and a replay then compute the same digest
                self.clock,
                engine=self._engine,
                requests=config.part(RequestConfig),
                health_log=self.health_log,
            )
        except TactfulError as error:
            raise ConfigError(f"selector: {error}") from error
        self._jobs: BoundedQueue[_Job] = self.health_log.queue("questions", MAX_WAITING, OverflowPolicy.REFUSE)
        self._open_jobs: set[_Job] = set()
        self._decisions = self.advertise(Decision, DECISIONS_TOPIC, EVENTS, "every decision")
        self._mirror = self.advertise(String, DECISIONS_JSON_TOPIC, EVENTS, "decisions, each as one line of JSON")
        self.subscribe_senses()
        self._goals = self.serve_action(
            SelectAction,
            "select_action",
            self._begin_goal,
            "recommends one of the candidates",
            cancel=self._cancel,
        )
        self._worker = self.start_worker("selector", self._decide_jobs)

    def subscribe_senses(self) -> None:
        """Subscribe to what decisions are based on."""
        self.subscribe(Frame, FRAMES_TOPIC, self.decide_on(Frame), EVENTS, "kept frames")
        self.subscribe(Utterance, UTTERANCES_TOPIC, self.decide_on(Utterance), SPEECH, "who said what")
        self.subscribe(Presence, PRESENCE_TOPIC, self.decide_on(Presence), EVENTS, "who is there")
        ended = "the senses have finished a recording"
        self.subscribe(Empty, SENSES_ENDED_TOPIC, self._end_input, EVENTS, ended)

    def stop(self) -> None:
        """Refuse goals, abort the open ones, and drop the queries that still wait for records."""
        self._end_jobs([job for job in self._open_jobs if job.handle])
        self.health_log.count("queries_dropped", self._selector.drop_queries())

    def close(self) -> None:
        """Answer what is open, and end the thread."""
        self._jobs.close()
        self._end_jobs(list(self._open_jobs))
        self._worker.join(timeout=self.config.longest_s)

    def _begin_goal(self, handle: Any) -> None:
        goal = handle.request
        goal_id = bytes(handle.goal_id.uuid).hex()
        request = Request(query_id=goal_id)
        fault, outcome = "" if self.is_active else INACTIVE, Outcome.FAILED
        try:
            request, cut = cut_texts(_read_request(goal, goal_id))
            self.health_log.note_cut_texts(cut)
        except MessageError as error:
            fault, outcome = str(error), Outcome.INVALID
        job = _Job(self._selector.ask(request, read_deadline(goal)), handle)
        if fault:
            self._open_jobs.add(job)
            self._end(job, self._selector.decline(job.due, fault, outcome))
        else:
            self._queue_job(job)

    def _cancel(self, handle: Any) -> None:
        for job in [job for job in self._open_jobs if job.handle is handle]:
            self._end(job, self._selector.decline(job.due, CANCELLED, Outcome.CANCELLED))

    def _end_jobs(self, jobs: list[_Job]) -> None:
        for job in jobs:
            self._end(job, self._selector.decline(job.due, INACTIVE))

    def _end(self, job: _Job, recommended: Recommendation) -> None:
        """Publish a decision and answer the goal, unless the request ended before."""
        if job not in self._open_jobs:
            return
        self._open_jobs.remove(job)
        self._jobs.withdraw(job)
        if job.timer:
            self.destroy_timer(job.timer)
        job.due.deadline.cancel()  # the thread may still decide
        self.publish(recommended)
        if job.handle:
            self._goals.end(job.handle, *choose_goal_end(job.handle, recommended.decision))

    def _publish_step(self, job: _Job, step: str) -> None:
        if job in self._open_jobs:
            remaining = Duration(seconds=job.due.deadline.remaining_s() or 0.0).to_msg()
            job.handle.publish_feedback(SelectAction.Feedback(step=step, remaining=remaining))

    def decide_on(self, record_type: type[SelectorRecord]) -> Callable[[Any], None]:
        """Return a callback that passes records to the selector and queues the requests that become due."""

        def on_message(message: Any) -> None:
            if record_type is Query and not self.is_active:
                return
            record = self.read_record(record_type, message, record_type.__name__)
            for due in self._selector.take(record) if record else ():
                self._queue_job(_Job(due))

        return on_message

    def _end_input(self, _: Any) -> None:
        for due in self._selector.end_input():
            self._queue_job(_Job(due))

    def _queue_job(self, job: _Job) -> None:
        self._open_jobs.add(job)  # before the queue, because the thread skips jobs that are not open
        if not self._jobs.put(job):
            self._end(job, self._selector.decline(job.due, TOO_MANY, Outcome.BUSY))
        elif remaining_s := job.due.deadline.remaining_s():
            job.timer = self.create_timer(remaining_s, partial(self._end_late, job))

    def _end_late(self, job: _Job) -> None:
        """End a request that still waits at its deadline; a decision under way ends by itself."""
        self.destroy_timer(job.timer)
        if self._jobs.withdraw(job):
            self._end(job, self._selector.decline(job.due, LATE, Outcome.TIMED_OUT))

    def _decide_jobs(self) -> None:
        # Otherwise the encoder would load with its first sentence, which takes seconds on a busy machine.
        self.health_log.state_issue("encoder", "sentence encoder: it is being loaded; the first answer waits for it")
        try:
            self._selector.prepare()
            self.health_log.clear_issue("encoder")
            self.get_logger().info("the sentence encoder is ready")
        except EngineError as error:
            self.health_log.raise_issue("encoder", Health.FAILED, f"sentence encoder: it cannot be loaded: {error}")
        release_freed_memory()
        while not self._jobs.is_drained():
            job = self._jobs.get(timeout_s=WAIT_S)
            if self._applied is not self.config:  # between two requests, so that each is decided by one configuration
                self._reconfigure(self.config)
            if job and job in self._open_jobs:
                self._decide(job)

    def _decide(self, job: _Job) -> None:
        def on_step(step: str) -> None:
            if job.handle:
                self.run_later("select_action", self._publish_step, job, step)

        decide = self.guard("select_action", self._selector.decide, lambda due, _: self._selector.decline(due, FAILURE))
        with self._engine.hold() if self._engine else nullcontext():
            recommended = decide(job.due, on_step)
        self.run_later("select_action", self._end, job, recommended)

    def _reconfigure(self, config: SelectorNodeConfig) -> None:
        self._applied = config
        try:
            self._selector.reconfigure(config.part(SelectorFiles), config.read_catalogue(), config.read_rules())
            self._selector.prepare()
            self.health_log.clear_issue("files")
        except TactfulError as error:  # a file was changed after it had been checked
            self.health_log.state_issue("files", f"selector: {error}; the earlier skills and rules stay in use")

    def publish(self, recommended: Recommendation) -> None:
        """Publish a decision on every topic that carries decisions."""
        decision = recommended.decision
        self._decisions.publish(to_ros(decision))
        self._mirror.publish(String(data=to_json(decision)))


def choose_goal_end(handle: Any, decision: Decision) -> tuple[Callable[[], None], Any]:
    """Choose the method of a goal's handle by which its decision ends it; return it with the result."""
    result = SelectAction.Result(decision=to_ros(decision))
    if decision.outcome in {Outcome.ANSWERED, Outcome.ABSTAINED}:
        return handle.succeed, result
    result.error_code, result.error_msg = result.decision.outcome, decision.explanation
    return handle.canceled if decision.outcome is Outcome.CANCELLED else handle.abort, result


def _read_request(goal: Any, goal_id: str) -> Request:
    return Request(
        query_id=goal.query_id or goal_id,
        candidates=tuple(goal.candidates),
        justifications=tuple(goal.justifications),
        situation=goal.situation,
        facts=tuple(goal.facts),
        others=tuple(from_ros(OtherAgent, other) for other in goal.others) if goal.others_given else None,
        viewpoint=from_ros(Viewpoint, goal.viewpoint) if goal.viewpoint_given else None,
    )
