"""Parameters of a composed configuration: declared with dots, read into its parts, reviewed, and errors by name."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import Field

from norm_core.records.status import NodeState
from norm_core.runtime.config import LIVE, Config, ConfigError

pytestmark = pytest.mark.ros


class Lens(Config):
    focus_m: float = Field(default=1.0, gt=0, description="distance that is sharp", json_schema_extra=LIVE)
    filters: tuple[str, ...] = Field(default=("red",), description="colours that are let through")


class Stand(Config):
    lens: Lens = Field(default=Lens(focus_m=2.0))
    height_m: float = 1.5


class CameraConfig(Config):
    topic: str = "pictures"
    stand: Stand = Field(default_factory=Stand)
    left: Lens = Field(default_factory=Lens)


@pytest.fixture
def make_node(domain_id: int) -> Iterator[Any]:
    """A function that makes a node, given its parameters as ROS would read them from a file."""
    import rclpy
    from norm_nodes.base import parameters
    from rclpy.node import Node

    rclpy.init(domain_id=domain_id)
    nodes: list[Node] = []

    def make(**given: Any) -> Node:
        nodes.append(Node("tripod"))
        overrides = {name.replace("__", "."): rclpy.Parameter(name, value=value) for name, value in given.items()}
        parameters.declare(nodes[-1], CameraConfig, overrides)
        return nodes[-1]

    yield make
    for node in nodes:
        node.destroy_node()
    rclpy.try_shutdown()


def test_a_part_has_parameters_with_its_name_and_a_dot(make_node: Any) -> None:
    from norm_nodes.base import parameters

    node = make_node(stand__lens__focus_m=3.0, left__filters=["blue", "green"])
    names = ["topic", "stand.lens.focus_m", "stand.lens.filters", "stand.height_m", "left.focus_m", "left.filters"]
    assert list(parameters.list_specs(CameraConfig)) == names
    assert [node.get_parameter(name).value for name in names] == [
        "pictures", 3.0, ["red"], 1.5, 1.0, ["blue", "green"],
    ]  # fmt: skip
    assert node.describe_parameter("left.focus_m").description == "distance that is sharp"
    stand = Stand(lens=Lens(focus_m=3.0))
    assert parameters.read(node, CameraConfig) == CameraConfig(stand=stand, left=Lens(filters=("blue", "green")))


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"left__focus_m": 0.0}, "parameters of tripod: left.focus_m: input should be greater than 0, not 0.0"),
        ({"stand__lens__focus_m": "far"}, "stand.lens.focus_m: input should be a valid number"),
        ({"height_m": 1.0}, "height_m: unknown key; did you mean stand.height_m\\? known are left, stand, topic"),
        ({"stand_height_m": 1.0}, "stand_height_m: unknown key; did you mean stand.height_m\\?"),
        ({"left__focus": 1.0}, "left.focus: unknown key; did you mean focus_m\\?"),
        ({"right__focus_m": 1.0}, "right: unknown key; known are left, stand, topic"),
        ({"left": 1.0}, "left: input should be a valid dictionary or instance of Lens, not 1.0"),
        ({"topic__name": "x"}, "topic: input should be a valid string, not {'name': 'x'}"),
    ],
)
def test_a_parameter_that_does_not_fit_is_named_with_its_part(
    make_node: Any, parameters: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        make_node(**parameters)


def test_a_change_is_reviewed_by_the_rules_of_its_part(make_node: Any) -> None:
    from norm_nodes.base import parameters
    from rclpy.parameter import Parameter

    node = make_node()

    def review(name: str, value: Any, state: NodeState = NodeState.ACTIVE) -> str:
        result = parameters.review(node, CameraConfig, [Parameter(name, value=value)], state)
        assert result.successful is not bool(result.reason)
        return str(result.reason)

    assert review("left.focus_m", 4.0) == ""
    assert "left.focus_m: input should be greater than 0" in review("left.focus_m", -1.0)
    assert review("stand.height_m", 2.0) == (
        "stand.height_m: it changes only in state unconfigured, and the node is active; "
        "deactivate and clean up the node first, and configure it again afterwards"
    )
    assert "; clean up the node first" in review("stand.height_m", 2.0, NodeState.INACTIVE)
    assert review("stand.height_m", 2.0, NodeState.UNCONFIGURED) == ""
    assert "did you mean left.focus_m" in review("focus_m", 2.0)
