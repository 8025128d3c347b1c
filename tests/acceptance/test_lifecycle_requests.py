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
