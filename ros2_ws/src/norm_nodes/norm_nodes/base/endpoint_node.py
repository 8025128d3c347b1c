"""The lowest base class of every node: guarded callbacks, and endpoints that live until they are released.

It is a base class rather than a part, because it overrides methods that rclpy calls, as `create_subscription`.
"""

import copy
import math
import time
import traceback
from collections import Counter as Tally
from collections.abc import Callable, Iterable
from functools import partial
from threading import Thread
from typing import Any, TypeVar

from rclpy.clock import Clock, ClockType
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.lifecycle import LifecycleNode
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription
from rclpy.timer import Timer

from norm_core.health.health_log import HealthLog
from norm_core.records.messages import MessageError
from norm_core.records.status import Health
from norm_core.runtime.config import ConfigError
from norm_nodes.base.convert import TypeMissingError, from_ros, message_class, record_class
from norm_nodes.base.endpoint import EVENTS, REQUESTS, CountedPublisher, Direction, Endpoint, describe_qos
from norm_nodes.base.goal_server import GoalServer
from norm_nodes.base.rclpy_internals import answer_later

R = TypeVar("R")

# How long the status states a failed callback or a refused message.
FAILURE_STATED_S = 60.0
# How long the status states that messages were lost. The loss stays counted.
LOSS_STATED_S = 10.0
# How long the status states a rival publisher after its latest message.
RIVAL_STATED_S = 5.0


class RosClock:
    """Read ROS time in nanoseconds since the epoch."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now_ns(self) -> int:
        """Return the node's time, which is simulated under use_sim_time."""
        return int(self._clock.now().nanoseconds)


class EndpointNode(LifecycleNode):
    """A node whose callbacks are guarded, and whose topics, services and actions are recorded for the API page."""

    def __init__(self, name: str) -> None:
        # `parameters` refuses names that the model lacks, and suggests the nearest one that it has.
        super().__init__(name, namespace="tactful", allow_undeclared_parameters=True)
        self.clock = RosClock(self.get_clock())
        self.endpoints: list[Endpoint] = []
        self.health_log = HealthLog(self._log_issue)
        self.published_by_topic: Tally[str] = Tally()
        self._releases: list[Callable[[], object]] = []
        self._goal_servers: dict[str, GoalServer] = {}
        self._workers: list[Thread] = []

    def guard(self, about: str, callback: Callable[..., R], otherwise: Callable[..., R]) -> Callable[..., R]:
        """Wrap a callback: count and state an exception in it, and return the result of `otherwise` instead."""

        def call(*arguments: Any) -> R:
            try:
                return callback(*arguments)
            except Exception as error:  # noqa: BLE001  whatever one message brings about must not end the process
                self.get_logger().error(traceback.format_exc())
                self.health_log.count("callbacks_failed")
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
        guarded = self.guard(name, callback, lambda: None)
        # Kilted passes information about the timer to a callback that takes any arguments.
        return super().create_timer(timer_period_sec, lambda: guarded(), *rest, **options)  # noqa: PLW0108

    def create_service(self, srv_type: Any, srv_name: str, callback: Any, **options: Any) -> Any:
        """Create rclpy's service with a guarded callback; after an exception, its response has default values."""
        guarded = self.guard(srv_name, callback, lambda _, response: response)
        return super().create_service(srv_type, srv_name, guarded, **options)

    def run_later(self, about: str, step: Callable[..., object], *arguments: Any) -> None:
        """Run a guarded step in the executor; do nothing if no executor spins the node."""
        if self.executor is not None:
            self.executor.create_task(self.guard(about, step, lambda *_: None), *arguments)

    def advertise(self, type_: Any, topic: str, qos: QoSProfile, description: str) -> Publisher:
        """Create a publisher of a record type or message class.

        The parameters qos_overrides.TOPIC.publisher.{reliability,history,depth} override `qos`.
        """
        message_type = _find_message_class(type_)
        publisher = super().create_publisher(
            message_type,
            topic,
            copy.copy(qos),  # rclpy writes the overrides into it
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            publisher_class=CountedPublisher,
        )
        assert isinstance(publisher, CountedPublisher)
        publisher.set_tally(self.published_by_topic)
        self.on_release(lambda: self.destroy_publisher(publisher))
        self._record_endpoint(Direction.PUBLISHES, publisher.topic_name, message_type, qos, description)
        return publisher

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
        """Create a subscription to a record type or message class; with `raw`, to the bytes of its messages.

        The parameters qos_overrides.TOPIC.subscription.{reliability,history,depth} override `qos`.
        """
        message_type = _find_message_class(type_)
        subscription = self.create_subscription(
            message_type,
            topic,
            callback,
            copy.copy(qos),  # rclpy writes the overrides into it
            event_callbacks=self.make_loss_events(topic),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            raw=raw,
        )
        self.on_release(lambda: self.destroy_subscription(subscription))
        self._record_endpoint(Direction.SUBSCRIBES, subscription.topic_name, message_type, qos, description)
        return subscription

    def listen(
        self, type_: Any, topic: str, callback: Callable[[Any], None], profiles: Iterable[QoSProfile]
    ) -> list[Subscription]:
        """Subscribe if there is a type; the caller destroys the subscriptions.

        They have no entry in the API page, which must not depend on the installed packages.
        """
        if type_ is None:
            return []
        events = self.make_loss_events(topic)
        return [self.create_subscription(type_, topic, callback, qos, event_callbacks=events) for qos in profiles]

    def watch_rivals(self, publisher: Publisher, reason: str) -> None:
        """State a reason while others send on the topic of a publisher of this node.

        DDS lists a publisher that was killed for twenty seconds more, so only messages prove a rival.
        """
        received = rival_count = 0

        def count_message(_: bytes) -> None:
            nonlocal received, rival_count
            received += 1
            if received - self.published_by_topic[publisher.topic_name] > rival_count:
                rival_count += 1
                self.health_log.raise_issue("rivals", Health.DEGRADED, reason, lasting_s=RIVAL_STATED_S)

        topic = publisher.topic_name
        subscription = self.create_subscription(publisher.msg_type, topic, count_message, EVENTS, raw=True)
        self.on_release(lambda: self.destroy_subscription(subscription))

    def make_loss_events(self, topic: str, *, reported: bool = True) -> SubscriptionEventCallbacks:
        """Create event callbacks that count messages lost by the middleware.

        The status reports a loss of several messages within LOSS_STATED_S. A single one is only counted.
        """
        advice = (
            f"{topic}: messages are lost, because this machine is too slow for them or a best-effort publisher sends "
            "larger messages than its shared memory holds; for images, use the compressed topic"
        )

        lost_s = -math.inf

        def count_lost(event: Any) -> None:
            nonlocal lost_s
            self.health_log.count("messages_lost", event.total_count_change)
            is_repeated = event.total_count_change > 1 or time.monotonic() < lost_s + LOSS_STATED_S
            lost_s = time.monotonic()
            if reported and is_repeated:
                self.health_log.raise_issue(f"loss on {topic}", Health.DEGRADED, advice, lasting_s=LOSS_STATED_S)

        return SubscriptionEventCallbacks(message_lost=count_lost)

    def serve(self, type_: Any, name: str, callback: Callable[[Any, Any], Any], description: str) -> Any:
        """Create a service with a fast, synchronous callback."""
        service = self.create_service(type_, name, callback, qos_profile=REQUESTS)
        self.on_release(lambda: self.destroy_service(service))
        self._record_endpoint(Direction.SERVES, service.service_name, type_, REQUESTS, description)
        return service

    def serve_later(
        self, type_: Any, name: str, begin: Callable[[Any, Any, Callable[[], None]], None], description: str
    ) -> None:
        """Create a service that answers once its work is done, while the executor goes on.

        `begin` must be quick. It gets the request, the response, and a function that sends it, once, from any thread.
        """

        def answer(pair: tuple[Any, Any], header: Any) -> None:
            begin(*pair, partial(send, pair[1], header))

        service = self.serve(type_, name, lambda _, response: response, description)
        _, send = answer_later(service, self.guard(name, answer, lambda pair, header: send(pair[1], header)))

    def serve_action(
        self,
        type_: Any,
        name: str,
        begin: Callable[[Any], None],
        description: str,
        *,
        cancel: Callable[[Any], None],
    ) -> GoalServer:
        """Serve an action. `begin` gets the handle of each goal, which `end` of the server ends."""
        if name not in self._goal_servers:
            self._goal_servers[name] = GoalServer(self, type_, name)
        server = self._goal_servers[name]
        server.open(begin, self.guard(name, cancel, lambda _: None))
        self.on_release(server.close)
        namespace = self.get_namespace().rstrip("/")
        full_name = name if name.startswith("/") else f"{namespace}/{name}"
        self._record_endpoint(Direction.ACTS, full_name, type_, REQUESTS, description)
        return server

    def repeat(self, period_s: float, callback: Callable[[], None]) -> None:
        """Call back at a steady pace, also while simulated time does not advance."""
        timer = self.create_timer(period_s, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.on_release(lambda: self.destroy_timer(timer))

    def start_worker(self, name: str, work: Callable[[], None]) -> Thread:
        """Start a thread that the caller ends, and that `await_workers` waits for."""
        worker = Thread(target=work, name=name, daemon=True)
        self._workers = [earlier for earlier in self._workers if earlier.is_alive()] + [worker]
        worker.start()
        return worker

    def await_workers(self) -> None:
        """Wait until the threads have ended: Python aborts if it ends while one is inside a native library."""
        for worker in self._workers:
            worker.join()

    def on_release(self, release: Callable[[], object]) -> None:
        """Call a function when the endpoints are released, the latest first."""
        self._releases.append(release)

    def release_endpoints(self) -> None:
        """Destroy the endpoints."""
        while self._releases:
            self._releases.pop()()

    def keep_endpoints(self) -> None:
        """Keep the endpoints of this moment as long as the node lives."""
        self._releases.clear()

    def destroy_node(self) -> None:
        """Destroy the node with its action servers, which rclpy leaves out."""
        while self._goal_servers:
            self._goal_servers.popitem()[1].destroy()
        LifecycleNode.destroy_node(self)

    def read_record(self, record_type: type[R], message: Any, topic: str) -> R | None:
        """Convert a message to its record; count an invalid one, state its fault, and return None."""
        try:
            return from_ros(record_type, message, self.health_log.note_cut_texts)
        except MessageError as error:
            self.health_log.count("messages_refused")
            why = f"{topic}: a message was not used: {error}"
            self.health_log.raise_issue(f"messages on {topic}", Health.DEGRADED, why, lasting_s=FAILURE_STATED_S)
            return None

    def find_class(self, type_name: str, topic: str, parameter: str) -> Any:
        """Import the class of a topic's messages; if it is not installed, state that and return None.

        `parameter` is the parameter that sets the type, or empty. Raises ConfigError if the name is not one of a type.
        """
        try:
            return message_class(type_name)
        except TypeMissingError as error:
            other = f"; if another type is published, set {parameter} of {self.get_name()} to it" if parameter else ""
            why = f"{topic}: not subscribed, because {error}{other}"
            self.health_log.state_issue(f"type of {topic}", why)
            return None
        except ValueError as error:
            raise ConfigError(f"{self.get_name()}: {parameter}: {error}") from error

    def require_class(self, type_name: str, parameter: str) -> Any:
        """Import the class of a message that a parameter asks for. Raises ConfigError if it is not installed."""
        try:
            return message_class(type_name)
        except TypeMissingError as error:
            raise ConfigError(f"{self.get_name()}: {parameter}: {error}, or set it to false") from error

    def find_published_types(self, topic: str) -> list[str]:
        """List the types of a topic's publishers."""
        return sorted({publisher.topic_type for publisher in self.get_publishers_info_by_topic(topic)})

    def describe_wrong_type(self, topic: str, type_name: str) -> str:
        """Return the problem if no publisher of a topic uses the type in which it is read, else ""."""
        types = self.find_published_types(topic)
        if not types or type_name in types:
            return ""
        return f"it is published as {' and '.join(types)} and read as {type_name}"

    def _log_issue(self, health: Health, reason: str) -> None:
        if health is Health.FAILED:
            self.get_logger().error(reason)
        else:
            self.get_logger().warning(reason)

    def _record_endpoint(
        self, direction: Direction, name: str, message_type: Any, qos: QoSProfile, description: str
    ) -> None:
        kind = {Direction.SERVES: "srv", Direction.ACTS: "action"}.get(direction, "msg")
        type_name = f"{message_type.__module__.split('.')[0]}/{kind}/{message_type.__name__}"
        endpoint = Endpoint(direction, name, type_name, describe_qos(qos), description)
        if endpoint not in self.endpoints:
            self.endpoints.append(endpoint)


def _find_message_class(type_: Any) -> Any:
    """Return a message class itself, or the class of a record type."""
    return type_ if hasattr(type_, "get_fields_and_field_types") else record_class(type_)
