"""The lifecycle of a node: transitions that state why they fail, requested by clients or by the host."""

import traceback
from collections.abc import Callable
from threading import Thread
from typing import Any

from lifecycle_msgs.msg import Transition
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn

from norm_core.engines.engine_pool import EngineLease
from norm_core.records.status import Health, NodeState
from norm_core.runtime.config import ConfigError
from norm_nodes.base.endpoint_node import EndpointNode
from norm_nodes.base.rclpy_internals import answer_later, get_change_state_service, read_transitions


class ManagedNode(EndpointNode):
    """A node that changes its state on request; the executor goes on while a model loads."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.state = NodeState.UNCONFIGURED
        begin = self.guard("change_state", self._begin_transition, lambda *_: None)
        self._change_state, self._send_state = answer_later(get_change_state_service(self), begin)

    @property
    def is_active(self) -> bool:
        """Whether the node accepts messages. A publisher of rclpy's lifecycle would drop what a node ends with."""
        return self.state is NodeState.ACTIVE

    def configure(self) -> None:
        """Acquire what the node holds while it is configured. An error fails the transition."""

    def start(self) -> None:
        """Begin to accept messages, on activation."""

    def stop(self) -> None:
        """Accept no more messages, on deactivation."""

    def clean_up(self) -> None:
        """Release what `configure` acquired."""

    def beat(self) -> None:
        """Publish the state."""

    def get_model_name(self) -> str:
        """Return the name of the model that is leased while configured, or an empty string."""
        return ""

    def load_model(self) -> EngineLease | None:
        """Load that model, so that `configure` itself is quick. Callable from any thread."""
        return None

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
        """Refuse a transition that the current state lacks. rclpy would raise, which would end the process."""
        transition = request.transition
        state, possible, labels = read_transitions(self)
        if transition.label in possible if transition.label else transition.id in possible.values():
            return self._change_state(request, response)
        requested = transition.label or labels.get(transition.id, f"do transition {transition.id}")
        choices = " or ".join(possible) or "do nothing more"
        self.get_logger().warning(f"{self.get_name()}: cannot {requested} while {state}; ask it to {choices}")
        response.success = False
        return response
