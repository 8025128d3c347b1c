"""Which nodes heartbeats show as active, and the memory and CPU time of a process."""

import mmap
import os

from norm_core.health.node_watch import NodeWatch, read_usage
from norm_core.records.status import Health, MonitorStatus, NodeState


class Wall:
    """A clock that a test moves."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def heartbeat(name: str, state: NodeState = NodeState.ACTIVE) -> MonitorStatus:
    return MonitorStatus(
        stamp_ns=0,
        node=f"/tactful/{name}",
        state=state,
        health=Health.OK,
        software_version="1",
        config_sha256="",
        instance_id=name,
        started_ns=0,
    )


def test_a_node_is_active_while_its_heartbeat_says_so() -> None:
    watch = NodeWatch(wall := Wall())
    watch.add_heartbeat(heartbeat("ears"))
    watch.add_heartbeat(heartbeat("camera", NodeState.INACTIVE))
    assert watch.active_nodes() == {"ears"}
    wall.now_s += 10
    assert watch.active_nodes() == frozenset()


def test_the_memory_of_a_process_is_in_its_usage() -> None:
    before = read_usage()
    with mmap.mmap(-1, 50_000_000) as pages:  # not malloc, which may give memory that the process has already
        pages[:] = b"\1" * len(pages)
        after = read_usage()
    assert before
    assert after
    assert after.process_id == os.getpid()
    assert after.memory_kb - before.memory_kb > 0.9 * 50_000_000 / 1024
    assert after.cpu_ms >= before.cpu_ms
