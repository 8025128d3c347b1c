"""Lifecycle requests that a node cannot follow are refused, and harm no node of the process."""

import pytest

from norm_monitor.replay.node_process import NodeProcess
from tests.observer import Observer

pytestmark = pytest.mark.ros

NODES = ("ears", "camera")


def states(observer: Observer) -> list[str]:
    return [observer.state_of(node) for node in NODES]


@pytest.mark.parametrize("executor", ["events", "single"])
def test_a_transition_that_the_state_does_not_have_is_refused(
    domain_id: int, observer: Observer, executor: str
) -> None:
    from lifecycle_msgs.msg import Transition

    configure, activate = {"id": Transition.TRANSITION_CONFIGURE}, {"id": Transition.TRANSITION_ACTIVATE}
    with NodeProcess(NODES, None, domain_id, options=("--executor", executor)) as process:
        assert not observer.change_state("ears", **activate)
        assert observer.change_state("ears", **configure)
        assert not observer.change_state("ears", **configure)
        assert not observer.change_state("ears", label="configure")
        assert not observer.change_state("ears", id=250)
        assert not observer.change_state("ears", label="dance")
        assert states(observer) == ["inactive", "unconfigured"]
        assert observer.change_state("ears", label="activate")
        assert not observer.change_state("ears", **activate)
        assert observer.change_state("camera", **configure)
        assert states(observer) == ["active", "inactive"]
        assert any("ears: cannot activate while active; ask it to deactivate" in line for line in process.output)
