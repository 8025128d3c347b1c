"""The base class of every node: lifecycle, checked parameters, bounded queues, heartbeat and diagnostics."""

import copy
import math
import time
import traceback
import uuid
from collections import Counter as Tally
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from threading import Event, Thread
from typing import Any, ClassVar, Generic, TypeVar

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from rcl_interfaces.msg import SetParametersResult
from rclpy.action import GoalResponse
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription
from rclpy.timer import Timer

from norm_core import __version__
from norm_core.engines.engine_pool import EngineLease, EnginePool, Urgency
from norm_core.health.counters import parity_note
from norm_core.health.health_log import HealthLog
from norm_core.health.node_watch import NodeWatch, release_freed_memory
from norm_core.records.messages import MessageError
from norm_core.records.stamps import join_stamp
from norm_core.records.status import Counter, Health, MonitorStatus, NodeState
from norm_core.records.topics import DIAGNOSTICS_TOPIC, STATUS_TOPIC
from norm_core.runtime.config import Config, ConfigError
from norm_core.runtime.errors import TactfulError
from norm_core.streams.bounded_queue import BoundedQueue, OverflowPolicy
from norm_nodes import parameters
from norm_nodes.convert import TypeMissingError, from_ros, message_class, record_class, to_ros
from norm_nodes.endpoint import (
    DIAGNOSTICS_QOS,
    EVENTS,
    HEARTBEAT_S,
    STATUS_QOS,
    CountedPublisher,
    Direction,
    Endpoint,
    diagnosis,
)
from norm_nodes.goal_server import GoalServer
from norm_nodes.rclpy_internals import parameter_overrides, take_over_transitions, transitions


class RosClock:
    """Read ROS time in nanoseconds since the epoch."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now_ns(self) -> int:
        """Return the node's time, which is simulated under use_sim_time."""
        return int(self._clock.now().nanoseconds)


C = TypeVar("C", bound=Config)
R = TypeVar("R")

DUPLICATE_FORGOTTEN_S = 3 * HEARTBEAT_S
# How long a node that ends waits for its last heartbeat to arrive.
LAST_HEARTBEAT = Duration(seconds=1)
FAILURE_STATED_S = 60.0  # of a callback, after the latest
LOSS_STATED_S = 10.0  # after the latest loss; it stays counted
RIVAL_STATED_S = 5.0  # after its latest message
CLOCK_AWAITED_BEATS = 5
NO_CLOCK = "time: use_sim_time is true, and no /clock yet; start what publishes it, or set use_sim_time to false"


class NormNode(LifecycleNode, Generic[C]):
    """A lifecycle node with a configuration model; subclasses fill in `open`, `start`, `stop` and `close`.

    `open` and `close` create and destroy what the node holds while configured. `start` and `stop` enclose its activity.
    Any of the four may raise ConfigError: the transition then fails, and the status gives the reason.
    """

    config_model: type[C]
    robot_wide: ClassVar[frozenset[str]] = frozenset()  # parameters that a file sets for every node of a robot

    def __init__(self, name: str) -> None:
        # What the model does not have is refused by `parameters`, which names the nearest that it has.
        super().__init__(name, namespace="tactful", allow_undeclared_parameters=True)
        self.endpoints: list[Endpoint] = []
        self.clock = RosClock(self.get_clock())
        self.engines = EnginePool(self.clock)  # a host of several nodes replaces it with a shared pool
        self.instance_id = uuid.uuid4().hex
        self.started_ns = time.time_ns()
        self.superseded_by: str | None = None
        self._duplicate_seen_s = -math.inf
        self._beats_at_zero = 0  # of the clock
        self.notes: tuple[str, ...] = ()  # of the status: what to expect of the node
        self.health_log = HealthLog(self._log)
        self.node_watch = NodeWatch()
        self._misplaced_sections = ""
        self.published_by_topic: Tally[str] = Tally()
        self._releases: list[Callable[[], object]] = []
        self._leases: list[EngineLease] = []
        self._goal_servers: dict[str, GoalServer] = {}
        self._workers: list[Thread] = []
        self._state = NodeState.UNCONFIGURED
        self._config_digest: tuple[C, str] | None = None
        parameters.declare(self, self.config_model, parameter_overrides(self), self.robot_wide)
        self.config: C = self._read_config()
        self._file_folders = parameters.file_folders(self, self.config_model)
        failed = SetParametersResult(successful=False, reason=f"{name}: the parameters were not checked; see its log")
        self.add_pre_set_parameters_callback(partial(parameters.in_types, self.config_model))
        self.add_on_set_parameters_callback(self.guard("parameters", self._review_parameters, lambda _: failed))
        self.add_post_set_parameters_callback(self.guard("parameters", self._update_config, lambda _: None))
        self._status = self.advertise(MonitorStatus, STATUS_TOPIC, STATUS_QOS, "heartbeat of each node, once a second")
        self._diagnostics = self.advertise(
            DiagnosticArray, DIAGNOSTICS_TOPIC, DIAGNOSTICS_QOS, "the same health for standard tools"
        )
        self.subscribe(
            MonitorStatus, STATUS_TOPIC, self._take_heartbeat, STATUS_QOS, "which nodes are active, and twice the same"
        )
        # The steady clock keeps the heartbeat running where simulated time stands still.
        self.repeat(HEARTBEAT_S, self.beat)
        self._change_state, self._send_state = take_over_transitions(
            self, self.guard("change_state", self._take_transition, lambda *_: None)
        )
        self._releases.clear()  # what exists by now lives as long as the node

    def check(self, config: C) -> None:
        """Raise ConfigError for what the model alone cannot check, on configure and on each change of a parameter."""

    def model_name(self) -> str:
        """Return the name of the model that `open` leases, or an empty string."""
        return ""

    def load_model(self) -> EngineLease | None:
        """Load the model that `open` leases, so that `open` itself is quick. Callable from any thread."""
        model = self.model_name()
        if not model:
            return None
        self.raise_issue("loading", Health.DEGRADED, f"{self.get_name()}: the model {model} is being loaded; wait")
        try:
            return self.engines.lease(model, Urgency.BACKGROUND)
        except TactfulError:
            return None  # `open` meets the same error, and states it
        finally:
            self.clear_issue("loading")

    def open(self) -> None:
        """Acquire everything for `config`. After an exception, endpoints and engine leases are released."""

    def start(self) -> None:
        """Begin to take messages, on activation."""

    def stop(self) -> None:
        """Take no more messages, on deactivation."""

    def close(self) -> None:
        """Release what `open` acquired; not called if `open` raised."""

    def is_finished(self) -> bool:
        """Whether the node has nothing left to do, like a player at the end of its bag."""
        return False

    def advertise(self, type_: Any, topic: str, qos: QoSProfile, description: str) -> Publisher:
        """Create a publisher of a record type or message class. It lives until `close` and appears in the API page.

        The parameters qos_overrides.TOPIC.publisher.{reliability,history,depth} override `qos`.
        """
        message_type = _as_message(type_)
        publisher = super().create_publisher(
            message_type,
            topic,
            copy.copy(qos),  # rclpy writes the overrides into it
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            publisher_class=CountedPublisher,
        )
        assert isinstance(publisher, CountedPublisher)
        publisher.set_tally(self.published_by_topic)
        self._releases.append(lambda: self.destroy_publisher(publisher))
        self._record_endpoint(Direction.PUBLISHES, publisher.topic_name, message_type, description)
        return publisher

    def watch_rivals(self, publisher: Publisher, reason: str) -> None:
        """State a reason while others send on the topic of a publisher of this node.

        DDS lists a publisher that was killed for twenty seconds more, so that only messages tell of a rival.
        """
        received = rival_count = 0

        def take(_: bytes) -> None:
            nonlocal received, rival_count
            received += 1
            if received - self.published_by_topic[publisher.topic_name] > rival_count:
                rival_count += 1
                self.health_log.raise_issue("rivals", Health.DEGRADED, reason, lasting_s=RIVAL_STATED_S)

        subscription = self.create_subscription(publisher.msg_type, publisher.topic_name, take, EVENTS, raw=True)
        self._releases.append(lambda: self.destroy_subscription(subscription))

    def subscribe(
        self,
        type_: Any,
        topic: str,
        callback: Callable[[Any], object],
        qos: QoSProfile,
        description: str,
        *,
        raw: bool = False,
    ) -> Any:
        """Create a subscription to a record type or message class. It lives until `close` and appears in the API page.

        With `raw`, the callback receives the serialized bytes of each message. The parameters
        qos_overrides.TOPIC.subscription.{reliability,history,depth} override `qos`.
        """
        message_type = _as_message(type_)
        subscription = self.create_subscription(
            message_type,
            topic,
            callback,
            copy.copy(qos),  # rclpy writes the overrides into it
            event_callbacks=self.loss_events(topic),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            raw=raw,
        )
        self._releases.append(lambda: self.destroy_subscription(subscription))
        self._record_endpoint(Direction.SUBSCRIBES, subscription.topic_name, message_type, description)
        return subscription

    def listen(
        self, type_: Any, topic: str, take: Callable[[Any], None], profiles: Iterable[QoSProfile]
    ) -> list[Subscription]:
        """Subscribe without an entry in the API page, which must not depend on the installed packages.

        Without a type, nothing is subscribed to.
        """
        if type_ is None:
            return []
        events = self.loss_events(topic)
        return [self.create_subscription(type_, topic, take, qos, event_callbacks=events) for qos in profiles]

    def guard(self, about: str, callback: Callable[..., R], otherwise: Callable[..., R]) -> Callable[..., R]:
        """Wrap a callback: an exception in it is counted and stated, and `otherwise` gives the result in its place."""

        def call(*arguments: Any) -> R:
            try:
                return callback(*arguments)
            except Exception as error:  # noqa: BLE001  whatever one message brings about must not end the process
                self.get_logger().error(traceback.format_exc())
                self.count("callbacks_failed")
                why = f"{about}: was not handled, because of {type(error).__name__} in {self.get_name()}; report it"
                self.health_log.raise_issue(f"callback {about}", Health.DEGRADED, why, lasting_s=FAILURE_STATED_S)
                return otherwise(*arguments)

        return call

    def create_subscription(self, msg_type: Any, topic: str, callback: Any, *rest: Any, **options: Any) -> Any:
        """Create rclpy's subscription with a guarded callback."""
        guarded = self.guard(topic, callback, lambda _: None)
        return super().create_subscription(msg_type, topic, guarded, *rest, **options)

    def create_timer(self, timer_period_sec: float, callback: Any, *rest: Any, **options: Any) -> Timer:
        """Create rclpy's timer with a guarded callback."""
        name = getattr(callback, "__name__", "timer")
        return super().create_timer(timer_period_sec, self.guard(name, callback, lambda: None), *rest, **options)

    def create_service(self, srv_type: Any, srv_name: str, callback: Any, **options: Any) -> Any:
        """Create rclpy's service with a guarded callback; after an exception, its response has default values."""
        guarded = self.guard(srv_name, callback, lambda _, response: response)
        return super().create_service(srv_type, srv_name, guarded, **options)

    def run_later(self, about: str, step: Callable[..., object], *arguments: Any) -> None:
        """Run a guarded step in the executor. Does nothing where the node is no longer spun."""
        if self.executor is not None:
            self.executor.create_task(self.guard(about, step, lambda *_: None), *arguments)

    def loss_events(self, topic: str, *, reported: bool = True) -> SubscriptionEventCallbacks:
        """Create event callbacks that count messages lost by the middleware and report the loss in the status."""

        def lost(event: Any) -> None:
            self.count("messages_lost", event.total_count_change)
            if reported:
                self.health_log.raise_issue(f"loss on {topic}", Health.DEGRADED, advice, lasting_s=LOSS_STATED_S)

        advice = (
            f"{topic}: messages are lost, because this machine is too slow for them or a best-effort publisher sends "
            "larger messages than its shared memory holds; for images, use the compressed topic"
        )
        return SubscriptionEventCallbacks(message_lost=lost)

    def serve(self, type_: Any, name: str, callback: Callable[[Any, Any], Any], description: str) -> Any:
        """Create a service with a fast, synchronous callback. It lives until `close` and appears in the API page."""
        service = self.create_service(type_, name, callback)
        self._releases.append(lambda: self.destroy_service(service))
        self._record_endpoint(Direction.SERVES, service.service_name, type_, description)
        return service

    def serve_later(
        self, type_: Any, name: str, begin: Callable[[Any, Any, Callable[[], None]], None], description: str
    ) -> None:
        """Create a service that answers once its work is done, while the executor goes on.

        `begin` must be quick. It gets the request, the response, and what sends it, once, from any thread.
        """
        service = self.serve(type_, name, lambda request, response: (request, response), description)
        send = service.send_response

        def answer(pair: tuple[Any, Any], header: Any) -> None:
            begin(pair[0], pair[1], partial(send, pair[1], header))

        # Executors send whatever a callback returns, and do not await it.
        service.send_response = self.guard(name, answer, lambda pair, header: send(pair[1], header))

    def serve_action(
        self,
        type_: Any,
        name: str,
        begin: Callable[[Any], None],
        description: str,
        *,
        accept: Callable[[Any], GoalResponse],
        cancel: Callable[[Any], None],
    ) -> GoalServer:
        """Serve an action until `close`. `begin` gets the handle of each goal, which `end` of the server ends."""
        if name not in self._goal_servers:
            self._goal_servers[name] = GoalServer(self, type_, name)
        server = self._goal_servers[name]
        accept = self.guard(name, accept, lambda _: GoalResponse.REJECT)
        server.open(begin, accept, self.guard(name, cancel, lambda _: None))
        self._releases.append(server.close)
        namespace = self.get_namespace().rstrip("/")
        self._record_endpoint(
            Direction.ACTS, name if name.startswith("/") else f"{namespace}/{name}", type_, description
        )
        return server

    def start_worker(self, name: str, work: Callable[[], None]) -> Thread:
        """Start a thread that `close` ends, and that `await_workers` waits for."""
        worker = Thread(target=work, name=name, daemon=True)
        self._workers = [earlier for earlier in self._workers if earlier.is_alive()] + [worker]
        worker.start()
        return worker

    def await_workers(self) -> None:
        """Wait until the threads have ended, for Python aborts where it ends while one is inside a native library."""
        for worker in self._workers:
            worker.join()

    def lease_engine(self, model: str, urgency: Urgency) -> EngineLease:
        """Lease a model's engine until `close`, shared with the other nodes of this process.

        Raises TactfulError where the engine cannot be opened.
        """
        lease = self.engines.lease(model, urgency)
        self._leases.append(lease)
        return lease

    def repeat(self, period_s: float, callback: Callable[[], None]) -> None:
        """Call back at a steady pace until `close`, also where simulated time stands still."""
        timer = self.create_timer(period_s, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self._releases.append(lambda: self.destroy_timer(timer))

    def read_record(self, record_type: type[R], message: Any, topic: str) -> R | None:
        """Convert a message to its record. One that is invalid is counted, and the status gives its fault."""
        try:
            return from_ros(record_type, message, self.health_log.note_cut_texts)
        except MessageError as error:
            self.count("messages_refused")
            why = f"{topic}: a message was not used: {error}"
            self.health_log.raise_issue(f"messages on {topic}", Health.DEGRADED, why, lasting_s=FAILURE_STATED_S)
            return None

    def find_class(self, type_name: str, topic: str, parameter: str) -> Any:
        """Import the class of a topic's messages; None where it is not installed, which the status then states.

        `parameter` sets the type, if one does. Raises ConfigError for what is no type.
        """
        try:
            return message_class(type_name)
        except TypeMissingError as error:
            other = f"; if another type is published, set {parameter} of {self.get_name()} to it" if parameter else ""
            why = f"{topic}: not subscribed, because {error}{other}"
            self.raise_issue(f"type of {topic}", Health.DEGRADED, why)
            return None
        except ValueError as error:
            raise ConfigError(f"{self.get_name()}: {parameter}: {error}") from error

    def wrong_type(self, topic: str, type_name: str) -> str:
        """Say of which other type a topic is published, where nobody publishes it as it is read; else nothing."""
        types = sorted({publisher.topic_type for publisher in self.get_publishers_info_by_topic(topic)})
        if not types or type_name in types:
            return ""
        return f"it is published as {' and '.join(types)} and read as {type_name}"

    def bounded_queue(
        self, name: str, capacity: int, policy: OverflowPolicy = OverflowPolicy.LATEST_WINS
    ) -> BoundedQueue[Any]:
        """Create a queue whose depth and drops appear in the status until `close`."""
        return self.health_log.queue(name, capacity, policy)

    def count(self, name: str, by: int = 1) -> None:
        """Add to a status counter. Callable from any thread."""
        self.health_log.count(name, by)

    def raise_issue(self, about: str, health: Health, reason: str) -> bool:
        """Report a problem and its remedy in the status until it is cleared. Callable from any thread."""
        return self.health_log.raise_issue(about, health, reason)

    def clear_issue(self, about: str) -> None:
        """Remove an issue from the status, if it is there."""
        self.health_log.clear_issue(about)

    def state_issue(self, about: str, reason: str, health: Health = Health.DEGRADED) -> None:
        """Report a problem while there is a reason, and clear it where that is empty."""
        if reason:
            self.raise_issue(about, health, reason)
        else:
            self.clear_issue(about)

    def note_misplaced_sections(self, reason: str) -> None:
        """Report sections of the parameter files that have no effect, as long as the process runs."""
        self._misplaced_sections = reason
        self._state_misplaced_sections()

    def status(self) -> MonitorStatus:
        """Build the status message of this moment."""
        counters, queues = self.health_log.counters, self.health_log.queues
        parity = parity_note(counters, sum(queue.dropped for queue in queues))
        return MonitorStatus(
            stamp_ns=self.clock.now_ns(),
            node=self.get_fully_qualified_name(),
            state=self._state,
            health=self.health_log.health,
            reasons=self.health_log.reasons,
            notes=tuple(filter(None, (*self.notes, parity, self.node_watch.usage_note()))),
            software_version=__version__,
            config_sha256=self._config_sha256(self.config),
            instance_id=self.instance_id,
            started_ns=self.started_ns,
            queues=(*queues, *(lease.status() for lease in self._leases)),
            counters=tuple(sorted((*counters, *self._engine_counters()), key=lambda c: c.name))
            + self.node_watch.own_counters(),
        )

    def _config_sha256(self, config: C) -> str:
        """Return the digest, which is computed once for each configuration."""
        if self._config_digest is None or self._config_digest[0] is not config:
            self._config_digest = (config, config.sha256())
        return self._config_digest[1]

    def beat(self) -> None:
        """Publish the status and the diagnostics once."""
        if not rclpy.ok(context=self.context):
            return
        if time.monotonic() > self._duplicate_seen_s + DUPLICATE_FORGOTTEN_S:
            self.clear_issue("duplicate_node")
        self._watch_engines()
        self._beats_at_zero = 0 if self.clock.now_ns() else self._beats_at_zero + 1
        self.state_issue("clock", NO_CLOCK if self._beats_at_zero > CLOCK_AWAITED_BEATS else "")
        status = self.status()
        self.node_watch.take(status)
        self._status.publish(to_ros(status))
        array = diagnosis(status)
        array.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(array)

    def _watch_engines(self) -> None:
        """Report the servers of leased models that cannot be reached, and what else their engines lack."""
        for lease in self._leases:
            model, server = lease.model_info.model, lease.server_status
            outage = server.outage if server else ""
            why = f"{outage}; requests fail at once until it is reached again" if outage else ""
            self.state_issue(f"server of {model}", why)
            self.state_issue(f"engine of {model}", "; ".join(lease.health.issues))

    def _engine_counters(self) -> list[Counter]:
        servers = [lease.server_status for lease in self._leases]
        refused = sum(server.requests_refused for server in servers if server)
        counters = [Counter(name="server_requests_refused", count=refused)] if any(servers) else []
        by_model = {lease.model_info.model: lease.health for lease in self._leases}  # its leases share one engine
        tally: Tally[str] = Tally()
        for health in by_model.values():
            tally.update({counter.name: counter.count for counter in health.counters})
        return counters + [Counter(name=name, count=count) for name, count in tally.items()]

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read the parameters and call `open`."""
        return self._transition(NodeState.INACTIVE, self._configure)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Call `start`."""
        super().on_activate(state)
        return self._transition(NodeState.ACTIVE, self.start)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Call `stop`."""
        super().on_deactivate(state)
        return self._transition(NodeState.INACTIVE, self.stop)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Call `close`, release endpoints and engines, and clear the status."""
        return self._transition(NodeState.UNCONFIGURED, self._clean_up)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop and close, from any state."""
        return self._transition(NodeState.FINALIZED, self.wind_down)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop and close, so that the node can be configured again."""
        return self._transition(NodeState.UNCONFIGURED, self.wind_down)

    def wind_down(self) -> None:
        """Stop and close from any lifecycle state."""
        if self._state is NodeState.ACTIVE:
            self.stop()
            self._state = NodeState.INACTIVE
        if self._state is NodeState.INACTIVE:
            self._clean_up()
            self._state = NodeState.UNCONFIGURED

    def end(self) -> None:
        """Wind down, and send a last heartbeat, so that a clean end is not taken for a fault."""
        self.wind_down()
        self._state = NodeState.FINALIZED
        self.beat()
        if rclpy.ok(context=self.context):
            self._status.wait_for_all_acked(LAST_HEARTBEAT)  # what is under way is lost where the node goes at once

    def destroy_node(self) -> None:
        """Destroy the node with its action servers, which rclpy leaves out."""
        while self._goal_servers:
            self._goal_servers.popitem()[1].destroy()
        LifecycleNode.destroy_node(self)

    def _take_transition(self, asked: tuple[Any, Any], header: Any) -> None:
        """Change the state in the executor, which goes on while a thread loads the model of a configuration."""
        transition = asked[0].transition

        def finish(lease: EngineLease | None = None) -> None:
            try:
                self._send_state(self._change_state_if_possible(*asked), header)
            finally:
                if lease:
                    lease.close()

        def load() -> None:
            self.run_later("change_state", finish, self.load_model())

        configures = (transition.label or transition.id) in {"configure", Transition.TRANSITION_CONFIGURE}
        if configures and self._state is NodeState.UNCONFIGURED and self.model_name():
            Thread(target=load, name="load_model", daemon=True).start()
        else:
            finish()

    def _change_state_if_possible(self, request: Any, response: Any) -> Any:
        """Refuse a transition that the current state lacks. rclpy would raise, which would end the process."""
        wanted = request.transition
        state, possible, labels = transitions(self)
        if wanted.label in possible if wanted.label else wanted.id in possible.values():
            return self._change_state(request, response)
        asked = wanted.label or labels.get(wanted.id, f"do transition {wanted.id}")
        choices = " or ".join(possible) or "do nothing more"
        self.get_logger().warning(f"{self.get_name()}: cannot {asked} while {state}; ask it to {choices}")
        response.success = False
        return response

    def _log(self, health: Health, reason: str) -> None:
        if health is Health.FAILED:
            self.get_logger().error(reason)
        else:
            self.get_logger().warning(reason)

    def _configure(self) -> None:
        self.config = self._read_config()
        self._reset_health()
        try:
            self.check(self.config)
            self.open()
        except BaseException:
            self._release()
            raise
        release_freed_memory()

    def _clean_up(self) -> None:
        try:
            self.close()
        finally:
            self._release()
        self._reset_health()

    def _reset_health(self) -> None:
        self.health_log.reset()
        self._state_misplaced_sections()

    def _state_misplaced_sections(self) -> None:
        if self._misplaced_sections:
            self.raise_issue("parameters", Health.DEGRADED, self._misplaced_sections)

    def _release(self) -> None:
        while self._releases:
            self._releases.pop()()
        while self._leases:
            self._leases.pop().close()

    def _transition(self, target: NodeState, step: Callable[[], None]) -> TransitionCallbackReturn:
        try:
            step()
        except (ConfigError, OSError) as error:
            self.raise_issue("transition", Health.FAILED, str(error))
            return TransitionCallbackReturn.FAILURE
        except Exception as error:  # noqa: BLE001 - rclpy would say that the transition failed, and nothing of why
            self.get_logger().error(traceback.format_exc())
            self.raise_issue(
                "transition",
                Health.FAILED,
                f"{self.get_name()}: a lifecycle transition failed: {type(error).__name__}: {error}; report it",
            )
            return TransitionCallbackReturn.ERROR
        self._state = target
        self.clear_issue("transition")
        self.beat()
        return TransitionCallbackReturn.SUCCESS

    def _review_parameters(self, changes: list[Parameter]) -> SetParametersResult:
        return parameters.review(
            self, self.config_model, changes, self._state, check=self.check, folders=self._file_folders
        )

    def _read_config(self) -> C:
        return parameters.read(self, self.config_model)

    def _update_config(self, _: list[Parameter]) -> None:
        self.config = self._read_config()

    def _take_heartbeat(self, message: Any) -> None:
        if message.instance_id == self.instance_id or not self._is_published_by(message.node):
            return
        with suppress(MessageError):  # of another version of Tactful
            self.node_watch.take(from_ros(MonitorStatus, message))
        if message.node != self.get_fully_qualified_name():
            return
        self._duplicate_seen_s = time.monotonic()
        self.count("duplicate_node_heartbeats")
        advice = f"{message.node}: another node of this name runs on this ROS domain; stop one, or set ROS_DOMAIN_ID"
        started_ns = join_stamp(message.started.sec, message.started.nanosec)
        if (started_ns, message.instance_id) < (self.started_ns, self.instance_id):
            self.superseded_by = advice
        else:
            self.raise_issue("duplicate_node", Health.DEGRADED, advice)

    def _is_published_by(self, node: str) -> bool:
        """Whether another node of this name publishes statuses now; a player repeats those of a recording."""
        names = [
            f"{publisher.node_namespace.rstrip('/')}/{publisher.node_name}"
            for publisher in self.get_publishers_info_by_topic(STATUS_TOPIC)
        ]
        return names.count(node) > (node == self.get_fully_qualified_name())

    def _record_endpoint(self, direction: Direction, name: str, message_type: Any, description: str) -> None:
        kind = {Direction.SERVES: "srv", Direction.ACTS: "action"}.get(direction, "msg")
        type_name = f"{message_type.__module__.split('.')[0]}/{kind}/{message_type.__name__}"
        endpoint = Endpoint(direction, name, type_name, description)
        if endpoint not in self.endpoints:
            self.endpoints.append(endpoint)


STOP_TIMEOUT_S = 5.0


class PublisherNode(NormNode[C]):
    """Run `publish_until_halted` in a thread from activation to deactivation."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.halt = Event()
        self._thread: Thread | None = None

    def publish_until_halted(self) -> None:
        """Publish until `halt` is set. Every wait is a wait for `halt`."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the thread."""
        self.halt.clear()
        self._thread = Thread(target=self.publish_until_halted, name=self.get_name(), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self.halt.set()
        if self._thread:
            self._thread.join(STOP_TIMEOUT_S)


def _as_message(type_: Any) -> Any:
    return type_ if hasattr(type_, "get_fields_and_field_types") else record_class(type_)
