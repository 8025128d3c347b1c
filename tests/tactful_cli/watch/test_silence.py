"""What a silent namespace is told."""

import pytest

from tactful_cli.watch.verb import remedy_for


@pytest.mark.parametrize(
    ("nodes", "remedy"),
    [
        (["/right/tactful/monitor", "/right/tactful/ears", "/driver"], "give --namespace right"),
        (["/tactful/ears", "/b/c/tactful/ears"], "leave --namespace out or give --namespace b/c"),
        (["/left/tactful/monitor", "/right/tactful/ears"], "its nodes run and send nothing"),
        (["/driver", "/tactful_helper"], "start them with ./tactful up, or check ROS_DOMAIN_ID"),
    ],
)
def test_the_remedy_names_the_namespace_that_has_nodes(nodes: list[str], remedy: str) -> None:
    assert remedy in remedy_for("/left/tactful", nodes)
