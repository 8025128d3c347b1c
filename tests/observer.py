"""A node of the test's own, on the test's own domain, that looks at others from outside."""

import time
import uuid
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from norm_core.records.json_codec import from_json
from norm_core.records.messages import from_message
from norm_core.records.status import MonitorStatus, NodeState
from norm_core.records.topics import DRAIN_REPORT_TOPIC, DRAIN_REQUEST_TOPIC
from tests.patience import PATIENCE_S

# How long a call that only reads waits before it is made again.
AGAIN_S = 10.0

if TYPE_CHECKING:
    from norm_bench.drain import DrainReport


class Observer:
    """Sees, calls and waits; every wait ends with what it waited for or fails the test."""

    def __init__(self, domain_id: int) -> None:
        import rclpy
        from rclpy.executors import SingleThreadedExecutor

        self.statuses: list[MonitorStatus] = []
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain_id)
        # Without /rosout: once the interpreter crashed as a node that had it was destroyed.
        self.node = rclpy.create_node("observer", context=self._context, enable_rosout=False)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)

    def until(self, condition: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
        """What condition gives as soon as it is true."""
        deadline_s = time.monotonic() + patience_s
        while not (result := condition()):
            if time.monotonic() > deadline_s:
                pytest.fail(f"waited {patience_s:.0f} s in vain for {what}")
            self._executor.spin_once(timeout_sec=0.05)
        return result

    def collect(self, message_type: Any, topic: str, qos: Any) -> list[Any]:
        """A list that grows with every message on topic."""
        seen: list[Any] = []
        self.node.create_subscription(message_type, topic, seen.append, qos)
        return seen

    def records(self, kind: type, topic: str) -> list[Any]:
        """A list that grows with every message of a record on a topic of Tactful."""
        from norm_nodes.base.convert import record_class
        from norm_nodes.base.endpoint import EVENTS

        return self.collect(record_class(kind), f"/tactful/{topic}", EVENTS)

    def publisher(self, kind: type, topic: str) -> Any:
        """A publisher of a record on a topic of Tactful."""
        from norm_nodes.base.convert import record_class
        from norm_nodes.base.endpoint import EVENTS

        return self.node.create_publisher(record_class(kind), f"/tactful/{topic}", EVENTS)

    def readers(self, topic: str) -> set[bytes]:
        """Who reads a topic; a process that was killed is among them until its lease ends."""
        return {bytes(info.endpoint_gid) for info in self.node.get_subscriptions_info_by_topic(topic)}

    def call(self, service_type: Any, name: str, **fields: Any) -> Any:
        client = self.node.create_client(service_type, name)
        self.until(client.service_is_ready, f"service {name}")
        node, _, verb = name.rpartition("/")
        if node.count("/") > 1 and not verb.startswith("get_"):
            # Endpoints become known in the order of their making: once this read is answered, so will the call be.
            from rcl_interfaces.srv import GetParameters

            self.call(GetParameters, f"{node}/get_parameters")
        futures = [client.call_async(service_type.Request(**fields))]
        if service_type.__name__.startswith("Get"):  # reads, which may be asked again
            asked_s = time.monotonic()

            def answered() -> bool:
                # A server that has not met the client's reader yet drops its first answer.
                if time.monotonic() > asked_s + AGAIN_S * len(futures):
                    futures.append(client.call_async(service_type.Request(**fields)))
                return any(future.done() for future in futures)

            self.until(answered, f"an answer of {name}", PATIENCE_S)
        else:
            self.until(futures[0].done, f"an answer of {name}", PATIENCE_S)
        return next(future.result() for future in futures if future.done())

    def change_state(self, node: str, **transition: Any) -> bool:
        """Asks a node for a transition by its id or label, and returns whether it followed."""
        from lifecycle_msgs.msg import Transition
        from lifecycle_msgs.srv import ChangeState

        wanted = Transition(**transition)
        return bool(self.call(ChangeState, f"/tactful/{node}/change_state", transition=wanted).success)

    def state_of(self, node: str) -> str:
        """The label of a node's lifecycle state."""
        from lifecycle_msgs.srv import GetState

        return str(self.call(GetState, f"/tactful/{node}/get_state").current_state.label)

    def set_parameter(self, node: str, name: str, value: Any) -> str:
        """Sets a parameter over the node's service, and returns why it was refused."""
        from rcl_interfaces.srv import SetParameters
        from rclpy.parameter import Parameter

        wanted = [Parameter(name, value=value).to_parameter_msg()]
        (result,) = self.call(SetParameters, f"/tactful/{node}/set_parameters", parameters=wanted).results
        assert result.successful is not bool(result.reason)
        return str(result.reason)

    def watch_status(self) -> list[MonitorStatus]:
        """A list that grows with every heartbeat on the domain."""
        from norm_nodes.base.convert import record_class
        from norm_nodes.base.endpoint import STATUS_QOS

        self.node.create_subscription(
            record_class(MonitorStatus),
            "/tactful/status",
            lambda message: self.statuses.append(from_message(MonitorStatus, message)),
            STATUS_QOS,
        )
        return self.statuses

    def meet(self, node: str) -> None:
        """Returns once what node publishes reaches every subscription that was made here before.

        A writer finds readers in the order of their making: one that reached the newest has found the others.
        """
        from norm_nodes.base.convert import record_class
        from norm_nodes.base.endpoint import STATUS_QOS

        heard: list[MonitorStatus] = []
        newest = self.node.create_subscription(
            record_class(MonitorStatus),
            "/tactful/status",
            lambda message: heard.append(from_message(MonitorStatus, message)),
            STATUS_QOS,
        )
        wanted = (f"/tactful/{node}", NodeState.ACTIVE)
        self.until(lambda: any((s.node, s.state) == wanted for s in heard), f"an active {node}")
        self.node.destroy_subscription(newest)

    def settled_of(self, node: str) -> "Callable[[], DrainReport]":
        """Tells, when called, what the node has taken and given by then, and whether it is idle."""
        from norm_bench.drain import DrainReport
        from std_msgs.msg import String

        messages = self.collect(String, f"/tactful/{DRAIN_REPORT_TOPIC}", 10)
        ask = self.node.create_publisher(String, f"/tactful/{DRAIN_REQUEST_TOPIC}", 10)
        name = f"/tactful/{node}"

        def settled() -> DrainReport:
            messages.clear()
            token = uuid.uuid4().hex

            def answer() -> DrainReport | None:
                ask.publish(String(data=token))  # again and again: what was asked before the node was found is lost
                replies = (from_json(DrainReport, message.data) for message in messages)
                return next((reply for reply in replies if (reply.node, reply.token) == (name, token)), None)

            report = self.until(answer, f"what {node} has taken")
            assert isinstance(report, DrainReport)
            return report

        return settled

    def counts_of(self, node: str) -> Callable[[], Counter[str]]:
        """Tells, when called, how many messages of each topic the node has taken by then."""
        settled = self.settled_of(node)
        return lambda: Counter(settled().processed)

    def until_told(self, words: str) -> None:
        """Returns once a watched heartbeat gives a reason with these words."""
        self.until(lambda: any(words in reason for status in self.statuses for reason in status.reasons), words)

    def counted(self, name: str) -> int:
        """The highest value of a counter in any heartbeat so far."""
        return max((c.count for s in self.statuses for c in s.counters if c.name == name), default=0)

    def close(self) -> None:
        import rclpy

        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self._context)
