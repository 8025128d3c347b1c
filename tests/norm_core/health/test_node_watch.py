"""What heartbeats tell of the nodes: which are active, and what their processes take together."""

import mmap
import os

import pytest

from norm_core.health.node_watch import NodeWatch, read_usage
from norm_core.records.status import Counter, Health, MonitorStatus, NodeState


class Wall:
    """A clock that a test moves."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def wall() -> Wall:
    return Wall()


@pytest.fixture
def watch(wall: Wall) -> NodeWatch:
    return NodeWatch(wall)


def heartbeat(
    name: str, process_id: int = 1, *, mb: int = 50, cpu_ms: int = 0, state: NodeState = NodeState.ACTIVE
) -> MonitorStatus:
    counts = {"process_id": process_id, "process_memory_kb": mb * 1024, "process_cpu_ms": cpu_ms}
    return MonitorStatus(
        stamp_ns=0,
        node=f"/tactful/{name}",
        state=state,
        health=Health.OK,
        software_version="1",
        config_sha256="",
        instance_id=name,
        started_ns=0,
        counters=tuple(Counter(name=key, count=count) for key, count in counts.items()),
    )


def test_a_node_is_active_while_its_heartbeat_says_so(watch: NodeWatch, wall: Wall) -> None:
    watch.take(heartbeat("ears"))
    watch.take(heartbeat("camera", state=NodeState.INACTIVE))
    assert watch.active_nodes() == {"ears"}
    wall.now_s += 10
    assert watch.active_nodes() == frozenset()


def test_the_nodes_of_one_process_count_once(watch: NodeWatch) -> None:
    watch.take(heartbeat("monitor", 1, mb=200))
    watch.take(heartbeat("selector", 1, mb=200))
    watch.take(heartbeat("ears", 2, mb=250))
    assert watch.usage_note().startswith("machine: 3 nodes in 2 processes take 450 MB of memory")


def test_what_ended_takes_nothing_though_no_other_heartbeat_comes(watch: NodeWatch, wall: Wall) -> None:
    watch.take(heartbeat("ears", mb=250))
    assert watch.usage_note().startswith("machine: 1 node in 1 process takes 250 MB of memory")
    wall.now_s += 10
    assert not watch.usage_note()


def test_cpu_is_the_time_spent_between_two_readings(watch: NodeWatch, wall: Wall) -> None:
    for second in range(11):
        wall.now_s = 100.0 + second
        watch.take(heartbeat("ears", 1, cpu_ms=1000 + 500 * (second // 5)))
        watch.take(heartbeat("camera", 2, cpu_ms=3000 + 250 * (second // 5)))
    assert watch.usage_note().endswith("and 15 % of a core")


def test_the_memory_of_a_process_is_in_its_usage() -> None:
    before = read_usage()
    with mmap.mmap(-1, 50_000_000) as held:  # not malloc, which may give memory that the process has already
        held[:] = b"\1" * len(held)
        after = read_usage()
    assert before
    assert after
    assert after.process_id == os.getpid()
    assert after.memory_kb - before.memory_kb > 0.9 * 50_000_000 / 1024
    assert after.cpu_ms >= before.cpu_ms
