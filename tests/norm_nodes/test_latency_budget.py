"""A node states that its live latency is over its budget, until it goes back or the budget is raised."""

from collections.abc import Iterator
from typing import Any

import pytest

from norm_core.records.status import Health
from norm_core.runtime.latency_budget import LATEST, LEAST

pytestmark = pytest.mark.ros


@pytest.fixture
def camera(domain_id: int) -> Iterator[Any]:
    """A configured camera without faces, with a budget of 50 ms a picture."""
    import rclpy
    from norm_nodes.camera import CameraNode
    from rclpy.parameter import Parameter

    rclpy.init(domain_id=domain_id)
    node = CameraNode()
    node.set_parameters([Parameter("faces", value=False), Parameter("budget.p95_ms", value=50.0)])
    node.trigger_configure()
    yield node
    node.end()
    node.destroy_node()
    rclpy.shutdown()


def reasons(node: Any) -> list[str]:
    node.beat()
    return [reason for reason in node.status().reasons if reason.startswith("budget: ")]


def test_the_status_warns_while_live_p95_is_over_the_budget(camera: Any) -> None:
    from rclpy.parameter import Parameter

    budget = next(iter(camera.budgets))
    for _ in range(LEAST):
        budget.add(80.0)
    (reason,) = reasons(camera)
    assert f"picture: live p95 of 80 ms over the last {LEAST} is over the budget of 50 ms" in reason
    assert "lower keep_hz" in reason
    assert camera.status().health is Health.DEGRADED
    counts = {counter.name: counter.count for counter in camera.status().counters}
    assert (counts["latency_p95_us_picture"], counts["latency_count_picture"]) == (80_000, LEAST)

    camera.set_parameters([Parameter("budget.p95_ms", value=90.0)])
    assert reasons(camera) == []
    camera.set_parameters([Parameter("budget.p95_ms", value=50.0)])
    assert reasons(camera)
    for _ in range(LATEST):
        budget.add(20.0)
    assert reasons(camera) == []
    assert camera.status().health is Health.OK


def test_a_node_that_is_cleaned_up_forgets_its_latencies(camera: Any) -> None:
    next(iter(camera.budgets)).add(80.0)
    camera.trigger_cleanup()
    assert not [counter for counter in camera.status().counters if counter.name.startswith("latency_")]
