"""A node seen from outside: its transitions, parameters, heartbeat and diagnostics, over DDS."""

import platform
import re
from pathlib import Path
from typing import Any

import pytest

from norm_core.bags.reader import BagReader
from norm_core.records.status import Health, NodeState
from norm_monitor.replay.node_process import NodeProcess, NodeProcessError
from tests.observer import Observer

pytestmark = pytest.mark.ros

RECORDER = "/tactful/bag_recorder"


@pytest.fixture(params=["events", "single"])
def recorder(request: pytest.FixtureRequest, domain_id: int, tmp_path: Path) -> Any:
    """An unconfigured recorder under either executor."""
    parameters = {"bag_recorder": {"bag": str(tmp_path / "bag"), "topics": ["/words"]}}
    with NodeProcess(["bag_recorder"], parameters, domain_id, options=("--executor", request.param)) as process:
        yield process


def test_recorder_goes_through_all_lifecycle_states(recorder: NodeProcess, observer: Observer, tmp_path: Path) -> None:
    from lifecycle_msgs.msg import Transition
    from norm_nodes.base.endpoint import EVENTS
    from std_msgs.msg import String

    words = observer.node.create_publisher(String, "/words", EVENTS)
    assert state_of(observer) == "unconfigured"
    for transition, state in (
        (Transition.TRANSITION_CONFIGURE, "inactive"),
        (Transition.TRANSITION_ACTIVATE, "active"),
    ):
        assert change(observer, transition)
        assert not change(observer, transition)
        assert not any(observer.change_state("bag_recorder", **wrong) for wrong in ({"id": 250}, {"label": "dance"}))
        assert state_of(observer) == state
    observer.until(words.get_subscription_count, "the recorder to listen")
    words.publish(String(data="while active"))
    observer.watch_status()
    observer.until(lambda: observer.counted("messages_recorded") == 1, "the message in the bag")
    assert any("could not do transition 3 while active; its status says why, or" in line for line in recorder.output)
    assert observer.change_state("bag_recorder", label="deactivate")
    words.publish(String(data="while inactive"))
    assert change(observer, Transition.TRANSITION_CLEANUP)
    assert state_of(observer) == "unconfigured"
    with BagReader(tmp_path / "bag") as bag:
        assert [bag.decode(m).data for m in bag.messages()] == ["while active"]
    assert change(observer, Transition.TRANSITION_UNCONFIGURED_SHUTDOWN)
    assert state_of(observer) == "finalized"


def test_a_failed_configuration_leaves_it_unconfigured_and_says_why(
    recorder: NodeProcess, observer: Observer, tmp_path: Path
) -> None:
    from lifecycle_msgs.msg import Transition

    (other := tmp_path / "bag" / "notes.txt").parent.mkdir()
    other.touch()
    statuses = observer.watch_status()
    assert not change(observer, Transition.TRANSITION_CONFIGURE)
    assert state_of(observer) == "unconfigured"
    last = observer.until(lambda: next((s for s in statuses if s.health is Health.FAILED), None), "a failed status")
    assert "exists already" in last.reasons[0]
    other.unlink()
    assert change(observer, Transition.TRANSITION_CONFIGURE)
    healed = observer.until(lambda: next((s for s in statuses if s.state is NodeState.INACTIVE), None), "a new status")
    assert (healed.health, healed.reasons) == (Health.OK, ())


def test_a_node_that_breaks_as_it_is_configured_says_how(domain_id: int, tmp_path: Path) -> None:
    program = tmp_path / "broken.py"
    program.write_text(
        "import sys\nfrom norm_nodes import monitor_node, node_host\n"
        "monitor_node.Monitor = None\nsys.exit(node_host.main(sys.argv[1:]))\n"
    )
    process = NodeProcess(["monitor"], None, domain_id, program=(str(program),))
    with pytest.raises(NodeProcessError, match=r"(?s)Traceback.*in open.*TypeError: 'NoneType'"), process:
        pass


# A host whose node's thread is at work until the node is destroyed, as one inside a native library may be.
BUSY_HOST = """
import sys
from threading import Event
from norm_nodes import node_host
from norm_nodes.selector_node import SelectorNode

class BusySelector(SelectorNode):
    destroyed = Event()

    def _decide_jobs(self):
        self.destroyed.wait()
        print("the work has ended", sum(range(10**7)))

    def destroy_node(self):
        super().destroy_node()
        self.destroyed.set()

sys.exit(node_host.main(sys.argv[1:], node_class=lambda name: BusySelector))
"""


def test_a_process_ends_after_its_nodes_threads(domain_id: int, tmp_path: Path) -> None:
    program = tmp_path / "busy.py"
    program.write_text(BUSY_HOST)
    with NodeProcess(["selector"], {"selector": {"longest_s": 0.1}}, domain_id, program=(str(program),)) as process:
        pass
    assert "the work has ended" in process.last_output()


def test_heartbeat_and_diagnostics_agree(recorder: NodeProcess, observer: Observer) -> None:
    from diagnostic_msgs.msg import DiagnosticArray

    statuses = observer.watch_status()
    diagnostics = observer.collect(DiagnosticArray, "/diagnostics", 10)
    observer.until(lambda: len(statuses) >= 2 and diagnostics, "two heartbeats")
    assert statuses[0].node == RECORDER
    assert statuses[0].instance_id == statuses[1].instance_id
    assert diagnostics[0].status[0].hardware_id == platform.node()
    assert 0.5e9 < statuses[1].stamp_ns - statuses[0].stamp_ns < 2e9
    assert diagnostics[0].status[0].name == RECORDER.removeprefix("/")
    assert all(re.fullmatch(r"\w+", value.key) for value in diagnostics[0].status[0].values)


def test_the_qos_of_a_topic_can_be_overridden(domain_id: int, observer: Observer) -> None:
    override = {"qos_overrides": {"/tactful/frames": {"publisher": {"reliability": "best_effort"}}}}
    with NodeProcess(["camera"], {"camera": override}, domain_id):
        observer.meet("camera")
        (frames,) = observer.node.get_publishers_info_by_topic("/tactful/frames")
    assert frames.qos_profile.reliability.name == "BEST_EFFORT"


def state_of(observer: Observer) -> str:
    return observer.state_of("bag_recorder")


def change(observer: Observer, transition_id: int) -> bool:
    return observer.change_state("bag_recorder", id=transition_id)


def test_a_simulated_time_that_never_comes_is_stated(domain_id: int) -> None:
    import rclpy
    from norm_bench.stand_ins.typed_robot import TypedRobotNode
    from norm_nodes.base.heartbeat import CLOCK_AWAITED_BEATS

    rclpy.init(args=["--ros-args", "-p", "use_sim_time:=true"], domain_id=domain_id)
    try:
        node = TypedRobotNode()
        for count in range(CLOCK_AWAITED_BEATS + 1):
            assert not any("/clock" in reason for reason in node.status().reasons), count
            node.beat()
        assert any("no /clock yet" in reason for reason in node.status().reasons)
        node.clock.now_ns = lambda: 1  # type: ignore[method-assign]
        node.beat()
        assert node.status().health is Health.OK
        node.destroy_node()
    finally:
        rclpy.try_shutdown()


def test_a_double_stays_a_double_whatever_number_it_is_set_to(domain_id: int, observer: Observer) -> None:
    from rcl_interfaces.msg import ParameterType
    from rcl_interfaces.srv import GetParameters, SetParametersAtomically
    from rclpy.parameter import Parameter

    name = "judge.deadline_s"

    def value() -> Any:
        (value,) = observer.call(GetParameters, "/tactful/monitor/get_parameters", names=[name]).values
        assert value.type == ParameterType.PARAMETER_DOUBLE
        return value.double_value

    with NodeProcess(["monitor"], {"monitor": {name: 4}}, domain_id, options=()):
        assert value() == 4.0
        assert observer.set_parameter("monitor", name, 5) == ""
        assert value() == 5.0
        changes = [Parameter(name, value=6).to_parameter_msg()]
        service = "/tactful/monitor/set_parameters_atomically"
        assert observer.call(SetParametersAtomically, service, parameters=changes).result.successful
        assert value() == 6.0
        for wrong in (True, "soon"):
            assert "parameter type" in observer.set_parameter("monitor", name, wrong)
        assert value() == 6.0


def test_each_parameter_has_the_type_of_its_model(domain_id: int, observer: Observer) -> None:
    """A list stays one of strings where it is empty, as C++ asks for its values by type."""
    from norm_nodes.base.parameters import list_specs
    from norm_nodes.monitor_node import MonitorNodeConfig
    from rcl_interfaces.srv import DescribeParameters, GetParameters
    from rclpy.parameter import Parameter

    types = {"boolean": "BOOL", "integer": "INTEGER", "number": "DOUBLE", "string": "STRING", "array": "STRING_ARRAY"}
    specs = list_specs(MonitorNodeConfig)
    expected = [Parameter.Type[types[spec.schema.get("type", "string")]].value for spec in specs.values()]
    with NodeProcess(["monitor"], {"monitor": {"study.no_words": []}}, domain_id, options=()):
        for _ in range(2):
            values = observer.call(GetParameters, "/tactful/monitor/get_parameters", names=list(specs)).values
            assert [value.type for value in values] == expected
            assert observer.set_parameter("monitor", "fusion.muted", ["no_response"]) == ""
            assert observer.set_parameter("monitor", "fusion.muted", []) == ""
        described = observer.call(DescribeParameters, "/tactful/monitor/describe_parameters", names=list(specs))
        deadline = described.descriptors[list(specs).index("judge.deadline_s")]
        assert deadline.floating_point_range[0].to_value > 0
        assert [(one.type, one.dynamic_typing) for one in described.descriptors] == [
            (type_, False) for type_ in expected
        ]
