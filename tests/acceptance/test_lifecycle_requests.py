"""Lifecycle requests that a node cannot follow are refused, and harm no node of the process."""

from typing import Any

import pytest

from sim_replays.drivers.node_process import NodeProcess
from tests.observer import Observer

pytestmark = pytest.mark.ros

NODES = ("ears", "camera")


def change_state(observer: Observer, node: str, **transition: Any) -> bool:
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState

    requested = Transition(**transition)
    return bool(observer.call(ChangeState, f"/tactful/{node}/change_state", transition=requested).success)


def states(observer: Observer) -> list[str]:
    from lifecycle_msgs.srv import GetState

    return [observer.call(GetState, f"/tactful/{node}/get_state").current_state.label for node in NODES]


@pytest.mark.parametrize("executor", ["events", "single"])
def test_a_transition_that_the_state_does_not_have_is_refused(
    domain_id: int, observer: Observer, executor: str
) -> None:
    from lifecycle_msgs.msg import Transition

    configure, activate = {"id": Transition.TRANSITION_CONFIGURE}, {"id": Transition.TRANSITION_ACTIVATE}
    with NodeProcess(NODES, None, domain_id, options=("--executor", executor)) as process:
        assert not change_state(observer, "ears", **activate)
        assert change_state(observer, "ears", **configure)
        assert not change_state(observer, "ears", **configure)
        assert not change_state(observer, "ears", label="configure")
        assert not change_state(observer, "ears", id=250)
        assert not change_state(observer, "ears", label="dance")
        assert states(observer) == ["inactive", "unconfigured"]
        assert change_state(observer, "ears", label="activate")
        assert not change_state(observer, "ears", **activate)
        assert change_state(observer, "camera", **configure)
        assert states(observer) == ["active", "inactive"]
        assert any("ears: cannot activate while active; ask it to deactivate" in line for line in process.output)


def test_a_node_that_fails_to_change_state_ends_no_other(domain_id: int, observer: Observer) -> None:
    from lifecycle_msgs.msg import Transition
    from rcl_interfaces.srv import SetParameters
    from rclpy.parameter import Parameter

    parameters = {"ears": {"words_type": "no_package_of_this_name", "words_from": "topic"}}
    with NodeProcess(NODES, parameters, domain_id, options=()):
        assert not change_state(observer, "ears", id=Transition.TRANSITION_CONFIGURE)
        for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
            assert change_state(observer, "camera", id=transition)
        assert states(observer) == ["unconfigured", "active"]
        mended = Parameter("words_type", value="std_msgs/msg/String").to_parameter_msg()
        assert observer.call(SetParameters, "/tactful/ears/set_parameters", parameters=[mended]).results[0].successful
        assert change_state(observer, "ears", id=Transition.TRANSITION_CONFIGURE)
