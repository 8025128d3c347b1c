"""A bond with the other side that Nav2's lifecycle manager has: a process of its own, with the real message."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from norm_core.records.status import Health
from norm_core.runtime.time import NS_PER_S
from norm_monitor.replay.node_process import NodeProcess, NodeProcessError
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.ros

PARAMETERS = {"camera": {"bond": True, "faces": False, "stale_after_s": 0.0}}
NEVER_S = 10 * PATIENCE_S


class Manager:
    """The other side of the bond of the camera."""

    def __init__(self, timeout_s: float = NEVER_S) -> None:
        command = [sys.executable, "-m", "tests.norm_nodes.bond_peer", "camera", str(timeout_s)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def next_line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()


@contextmanager
def manager(timeout_s: float = NEVER_S) -> Iterator[Manager]:
    peer = Manager(timeout_s)
    try:
        yield peer
    finally:
        peer.process.kill()
        peer.process.wait()


@pytest.fixture
def patient(tmp_path: Path) -> tuple[str]:
    """A host whose bond outlasts any pause of a busy machine."""
    program = tmp_path / "patient.py"
    program.write_text(
        "import sys\nfrom norm_nodes import node_host\nfrom norm_nodes.base import bond\n"
        f"bond.HEARTBEAT_TIMEOUT_S = {NEVER_S}\nsys.exit(node_host.main(sys.argv[1:]))\n"
    )
    return (str(program),)


@pytest.mark.usefixtures("bond_msgs")
@pytest.mark.parametrize("executor", ["events", "single"])
def test_a_bond_lasts_from_activation_to_deactivation(
    domain_id: int, observer: Observer, executor: str, patient: tuple[str]
) -> None:
    options = ("--executor", executor)
    observer.watch_status()
    with NodeProcess(["camera"], PARAMETERS, domain_id, options, program=patient):
        for steps in (("deactivate", "cleanup"), ("shutdown",)):
            assert observer.change_state("camera", label="configure")
            assert observer.change_state("camera", label="activate")
            with manager() as peer:
                assert peer.next_line() == "formed"
                for step in steps:
                    assert observer.change_state("camera", label=step)
                assert peer.next_line() == "broken"  # as it was told, because its own time limit is long
        assert observer.counted("callbacks_failed") == 0


@pytest.mark.usefixtures("bond_msgs")
def test_a_broken_bond_is_stated_until_the_next_activation(
    domain_id: int, observer: Observer, patient: tuple[str]
) -> None:
    statuses = observer.watch_status()
    with NodeProcess(["camera"], PARAMETERS, domain_id, program=patient):
        observer.until_told("/tactful/bond: no lifecycle manager answers the bond of camera; start one")
        with manager() as peer:
            assert peer.next_line() == "formed"
            observer.until(lambda: statuses[-1].health is Health.OK, "a bond that is whole")
            assert peer.process.stdin
            peer.process.stdin.close()
            observer.until_told("because the lifecycle manager broke it; let it deactivate and activate camera")
        assert observer.change_state("camera", label="deactivate")
        assert observer.change_state("camera", label="activate")
        with manager() as peer:
            assert peer.next_line() == "formed"
            sent = len(statuses)
            observer.until(
                lambda: any(status.health is Health.OK for status in statuses[sent:]), "a bond that is whole"
            )


@pytest.mark.usefixtures("bond_msgs")
def test_each_side_notices_the_death_of_the_other(domain_id: int, observer: Observer) -> None:
    statuses = observer.watch_status()
    with NodeProcess(["camera"], PARAMETERS, domain_id):
        observer.until_told("no lifecycle manager answers")
        with manager() as peer:
            assert peer.next_line() == "formed"
            # Only now is it certain that the node has met the other side, too.
            observer.until(lambda: statuses[-1].health is Health.OK, "a bond that is whole")
        observer.until_told("because the lifecycle manager is silent; let it deactivate and activate camera")
    node = NodeProcess(["camera"], PARAMETERS, domain_id)
    node.begin()
    with manager(timeout_s=4.0) as peer:
        assert peer.next_line() == "formed"
        # bondpy notices no death before a second message: ten come within a second.
        met_ns = time.time_ns() + NS_PER_S
        observer.until(lambda: statuses[-1].stamp_ns > met_ns, "a status of a second later")
        os.kill(node.pid, signal.SIGKILL)
        assert peer.next_line() == "broken"
    node.wait(PATIENCE_S)


def test_a_bond_needs_its_package(domain_id: int) -> None:
    with pytest.raises(NodeProcessError, match="bond: bond/msg/Status is not installed; install bond"):
        NodeProcess(["camera"], PARAMETERS, domain_id).__enter__()
