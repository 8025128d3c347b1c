"""The base class of every node: a configuration model, and what to open, start, stop and close by its lifecycle."""

import traceback
from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import Any, ClassVar, Generic, TypeVar

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from pydantic import Field
from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter

from norm_core import __version__
from norm_core.engines.engine_pool import EngineLease, EnginePool
from norm_core.health.counters import describe_parity
from norm_core.health.node_watch import release_freed_memory
from norm_core.records.status import Health, MonitorStatus, NodeState
from norm_core.runtime.config import LIVE, Config, ConfigError
from norm_nodes.base import parameters
from norm_nodes.base.bond import Bond
from norm_nodes.base.endpoint_node import EndpointNode
from norm_nodes.base.heartbeat import Heartbeat
from norm_nodes.base.leased_engines import LeasedEngines
from norm_nodes.base.rclpy_internals import (
    answer_later,
    read_parameter_overrides,
)


class NodeConfig(Config):
    """The parameters of every node of a robot."""

    bond: bool = Field(
        default=False,
        description="whether a lifecycle manager such as Nav2's notices by a bond (bond_core) that the node has died",
    )


# A parameter of nodes that read a stream.
STALE_AFTER_S: Any = Field(
    default=3.0,
    ge=0,
    le=600,
    description="time without a message until the input is stale; 0 for never",
    json_schema_extra=LIVE,
)

C = TypeVar("C", bound=Config)


class NormNode(EndpointNode, Generic[C]):
    """A lifecycle node with a configuration model; subclasses fill in `open`, `start`, `stop` and `close`.

    `open` and `close` create and destroy the parts of a configured node. `start` and `stop` enclose its activity.
    Any of the four may raise ConfigError: the transition then fails, and the status gives the reason.
    `open` calls methods of `EndpointNode`: `advertise`, `subscribe`, `serve`, `repeat`. All end by themselves.
    """

    config_model: type[C]
    robot_wide: ClassVar[frozenset[str]] = frozenset()  # the parameters that a file sets for every node of a robot

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.state = NodeState.UNCONFIGURED
        service = next(served for served in self.services if served.srv_type is ChangeState)
        begin = self.guard("change_state", self._begin_transition, lambda *_: None)
        self._change_state, self._send_state = answer_later(service, begin)
        self.engines = LeasedEngines(EnginePool(self.clock), self.health_log)
        self.notes: tuple[str, ...] = ()  # part of the status: what a user should know though the node is well
        self._misplaced_sections = ""
        self._bond: Bond | None = None
        self._config_digest: tuple[C, str] | None = None
        parameters.declare(self, self.config_model, read_parameter_overrides(self), self.robot_wide)
        self.config: C = parameters.read(self, self.config_model)
        self._file_folders = parameters.find_file_folders(self, self.config_model)
        failed = SetParametersResult(successful=False, reason=f"{name}: the parameters were not checked; see its log")
        self.add_pre_set_parameters_callback(partial(parameters.convert_types, self.config_model))
        self.add_on_set_parameters_callback(self.guard("parameters", self._review_parameters, lambda _: failed))
        self.add_post_set_parameters_callback(self.guard("parameters", self._update_config, lambda _: None))
        self.heartbeat = Heartbeat(self, self._read_status)
        self.keep_endpoints()

    @property
    def is_active(self) -> bool:
        """Whether the node accepts messages. A publisher of rclpy's lifecycle would drop what a node ends with."""
        return self.state is NodeState.ACTIVE

    def check(self, config: C) -> None:
        """Check what the model alone cannot, on configure and on each change of a parameter. Raises ConfigError."""

    def open(self) -> None:
        """Acquire everything for `config`. After an exception, endpoints and engine leases are released."""

    def start(self) -> None:
        """Begin to accept messages, on activation."""

    def stop(self) -> None:
        """Accept no more messages, on deactivation."""

    def close(self) -> None:
        """Release what `open` acquired; not called if `open` raised."""

    def get_model_name(self) -> str:
        """Return the name of the model that is leased while configured, or an empty string."""
        return ""

    def is_finished(self) -> bool:
        """Return whether the node has nothing left to do, like a player at the end of its bag."""
        return False

    def configure(self) -> None:
        """Read the parameters and call `open`."""
        self._update_config()
        self._reset_health()
        try:
            self.check(self.config)
            self.open()
            self._bond = Bond(self) if isinstance(self.config, NodeConfig) and self.config.bond else None
        except BaseException:
            self._release()
            raise
        release_freed_memory()

    def clean_up(self) -> None:
        """Call `close`, release endpoints and engines, and clear the status."""
        try:
            self.close()
        finally:
            self._release()
        self._reset_health()

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Call `configure`."""
        return self._run_transition(NodeState.INACTIVE, self.configure)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Call `start`."""
        super().on_activate(state)
        return self._run_transition(NodeState.ACTIVE, self.start)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Call `stop`."""
        super().on_deactivate(state)
        return self._run_transition(NodeState.INACTIVE, self.stop)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Call `clean_up`."""
        return self._run_transition(NodeState.UNCONFIGURED, self.clean_up)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop and clean up, from any state."""
        return self._run_transition(NodeState.FINALIZED, self.wind_down)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop and clean up, so that the node can be configured again."""
        return self._run_transition(NodeState.UNCONFIGURED, self.wind_down)

    def wind_down(self) -> None:
        """Stop and clean up from any state."""
        if self.state is NodeState.ACTIVE:
            self.stop()
            self.state = NodeState.INACTIVE
        if self.state is NodeState.INACTIVE:
            self.clean_up()
            self.state = NodeState.UNCONFIGURED

    def end(self) -> None:
        """Wind down, and send a last heartbeat, so that a clean end does not look like a fault."""
        self.wind_down()
        self.state = NodeState.FINALIZED
        self.heartbeat.send_last()

    def load_model(self) -> EngineLease | None:
        """Load the model that `open` leases, so that `open` itself is quick. Callable from any thread."""
        model = self.get_model_name()
        return self.engines.load(model, self.get_name()) if model else None

    def note_misplaced_sections(self, reason: str) -> None:
        """State, as long as the process runs, that sections of the parameter files have no effect."""
        self._misplaced_sections = reason
        self.health_log.state_issue("parameters", reason)

    def status(self) -> MonitorStatus:
        """Build the status message of this moment."""
        counters, queues = self.health_log.counters, self.health_log.queues
        parity = describe_parity(counters, sum(queue.dropped for queue in queues))
        node_watch = self.heartbeat.node_watch
        return MonitorStatus(
            stamp_ns=self.clock.now_ns(),
            node=self.get_fully_qualified_name(),
            state=self.state,
            health=self.health_log.health,
            reasons=self.health_log.reasons,
            notes=tuple(filter(None, (*self.notes, parity))),
            software_version=__version__,
            config_sha256=self._hash_config(),
            instance_id=self.heartbeat.instance_id,
            started_ns=self.heartbeat.started_ns,
            queues=(*queues, *self.engines.list_queues()),
            counters=tuple(sorted((*counters, *self.engines.list_counters()), key=lambda counter: counter.name))
            + node_watch.count_own_usage(),
        )

    def beat(self) -> None:
        """Publish the status once, beside the heartbeats that come by themselves."""
        self.heartbeat.beat()

    def _read_status(self) -> MonitorStatus:
        self.engines.state_faults()
        return self.status()

    def _hash_config(self) -> str:
        """Return the digest of the configuration, computed once for each."""
        config = self.config  # a callback may replace it meanwhile
        if self._config_digest is None or self._config_digest[0] is not config:
            self._config_digest = (config, config.sha256())
        return self._config_digest[1]

    def _release(self) -> None:
        self.release_endpoints()
        self._bond = None
        self.engines.close()

    def _reset_health(self) -> None:
        self.health_log.reset()
        self.note_misplaced_sections(self._misplaced_sections)

    def _review_parameters(self, changes: list[Parameter]) -> SetParametersResult:
        return parameters.review(
            self, self.config_model, changes, self.state, check=self.check, folders=self._file_folders
        )

    def _update_config(self, _: list[Parameter] | None = None) -> None:
        self.config = parameters.read(self, self.config_model)

    def _run_transition(self, target: NodeState, step: Callable[[], None]) -> TransitionCallbackReturn:
        try:
            step()
        except (ConfigError, OSError) as error:
            self.health_log.raise_issue("transition", Health.FAILED, str(error))
            return TransitionCallbackReturn.FAILURE
        except Exception as error:  # noqa: BLE001 - rclpy would say that the transition failed, and nothing of why
            self.get_logger().error(traceback.format_exc())
            problem = f"a lifecycle transition failed: {type(error).__name__}: {error}; report it"
            self.health_log.raise_issue("transition", Health.FAILED, f"{self.get_name()}: {problem}")
            return TransitionCallbackReturn.ERROR
        self.state = target
        if self._bond:
            (self._bond.start if self.is_active else self._bond.break_off)()
        self.health_log.clear_issue("transition")
        self.beat()
        return TransitionCallbackReturn.SUCCESS

    def _begin_transition(self, pair: tuple[Any, Any], header: Any) -> None:
        """Change the state in the executor; a thread loads the model of a configuration beforehand."""
        request, response = pair

        def finish(lease: EngineLease | None = None) -> None:
            try:
                self._send_state(self._change_if_allowed(request, response), header)
            finally:
                if lease:
                    lease.close()

        def load() -> None:
            self.run_later("change_state", finish, self.load_model())

        transition = request.transition
        configures = (transition.label or transition.id) in {"configure", Transition.TRANSITION_CONFIGURE}
        if configures and self.state is NodeState.UNCONFIGURED and self.get_model_name():
            Thread(target=load, name="load_model", daemon=True).start()
        else:
            finish()

    def _change_if_allowed(self, request: Any, response: Any) -> Any:
        """Change the state; refuse what the current state does not allow, at which Jazzy's rclpy raises."""
        transition, state = request.transition, self.state
        try:
            self._change_state(request, response)
        except Exception as error:  # noqa: BLE001  a class of a private module
            self.get_logger().debug(str(error))
            response.success = False
        if not response.success:
            requested = transition.label or f"do transition {transition.id}"
            remedy = "its status says why, or `ros2 lifecycle list` shows what it can do"
            self.get_logger().warning(f"{self.get_name()}: could not {requested} while {state}; {remedy}")
        return response
