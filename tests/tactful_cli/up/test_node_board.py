"""What a person is told of the nodes, from their heartbeats."""

from norm_core.records.status import Health, MonitorStatus, NodeState
from tactful_cli.up.node_board import (
    SETTLED_AFTER_S,
    SILENT_AFTER_S,
    STATED_AGAIN_AFTER_S,
    NodeBoard,
)
from tests.node_records import node_status

ACTIVE = "all nodes are active"


def heartbeat(node: str, *reasons: str, state: NodeState = NodeState.ACTIVE, started_ns: int = 10) -> MonitorStatus:
    health = Health.DEGRADED if reasons else Health.OK
    return node_status(
        20, node=f"/tactful/{node}", state=state, health=health, reasons=reasons, instance_id="a", started_ns=started_ns
    )


def board() -> NodeBoard:
    made = NodeBoard(["camera", "ears"], "/tactful")
    made.take_launch(["camera"], 5, 0)
    made.take_launch(["ears"], 5, 0)
    return made


def active_board() -> NodeBoard:
    made = board()
    made.take_status(heartbeat("camera"), 0.0)
    made.take_status(heartbeat("ears"), 0.0)
    made.take_time(0.0)
    made.take_time(SETTLED_AFTER_S)
    assert made.is_settled
    return made


def test_all_are_active_once_each_says_so() -> None:
    made = board()
    assert made.take_status(heartbeat("camera"), 0.0) == []
    assert made.take_status(heartbeat("ears", state=NodeState.INACTIVE), 0.0) == []
    assert made.take_status(heartbeat("ears"), 1.0) == [ACTIVE]
    assert made.take_status(heartbeat("ears"), 2.0) == []


def test_a_node_that_comes_back_is_told_with_its_count() -> None:
    made = active_board()
    made.take_end(["ears"], "was ended by SIGKILL")
    assert not made.all_active
    made.take_launch(["ears"], 30, 2)
    told = made.take_status(heartbeat("ears", started_ns=31), 3.0)
    assert told == ["ears: is active again, after 2 restarts", ACTIVE]


def test_a_reason_is_told_when_it_comes_and_when_it_goes() -> None:
    made = active_board()
    assert made.take_status(heartbeat("ears", "ears: no audio for 3 s"), 1.0) == ["ears: no audio for 3 s"]
    assert made.take_status(heartbeat("ears", "ears: no audio for 3 s"), 2.0) == []
    assert made.take_status(heartbeat("ears"), 3.0) == ["ears: no longer: ears: no audio for 3 s"]


def test_a_reason_that_flickers_is_told_seldom() -> None:
    made = active_board()
    told = []
    for second in range(1, 30):
        reasons = [f"no audio for {second} s"] if second % 2 else []
        told += made.take_status(heartbeat("ears", *reasons), float(second))
    assert told == ["ears: no audio for 1 s", "ears: no longer: no audio for 1 s"]
    later_s = STATED_AGAIN_AFTER_S + 60.0
    assert made.take_status(heartbeat("ears", "no audio for 99 s"), later_s) == ["ears: no audio for 99 s"]


def test_a_node_that_hangs_is_told() -> None:
    made = active_board()
    made.take_status(heartbeat("camera"), SILENT_AFTER_S)
    assert made.take_time(SILENT_AFTER_S) == []
    (told,) = made.take_time(SILENT_AFTER_S + 1.0)
    assert told.startswith("ears: no heartbeat came for 3 s")
    assert made.take_time(SILENT_AFTER_S + 2.0) == []
    made.take_status(heartbeat("ears"), 8.0)
    made.take_status(heartbeat("camera"), 12.0)
    assert made.take_time(12.0) == [told]  # another silence, however soon
