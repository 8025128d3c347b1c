"""The shipped profiles: every parameter is one that its node has, and every fact has a source."""

import pytest

from tactful_cli.up.profile import SHIPPED, load, shipped
from tactful_cli.up.ros_tools import effective_parameters

ROBOTS = ("ari", "nao", "pepper", "tiago")


def test_the_profiles_are_those_of_the_page() -> None:
    assert set(shipped()) == {*ROBOTS, "laptop", "simulated"}


@pytest.mark.ros
@pytest.mark.parametrize("name", sorted(shipped()))
def test_nodes_accept_every_parameter(name: str, domain_id: int) -> None:
    assert effective_parameters(load(name)).problems == ()


@pytest.mark.parametrize("name", ROBOTS)
def test_what_was_not_tried_on_the_robot_says_so(name: str) -> None:
    assert "Not tried on the robot" in shipped()[name]
    assert "Source" in (SHIPPED / f"{name}.yaml").read_text(encoding="utf-8")
