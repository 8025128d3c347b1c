"""`tactful test`: which tests belong to which stage."""

import pytest

from tests.tactful_cli.test_verbs import tactful

LIFECYCLE, REQUESTS, LAYERS, GOLDENS = (
    f"tests/{name}.py"
    for name in (
        "norm_nodes/test_lifecycle",
        "acceptance/test_lifecycle_requests",
        "test_import_layers",
        "goldens/test_goldens",
    )
)


@pytest.mark.parametrize(
    ("stage", "files"), [("unit", {LAYERS}), ("graph", {LIFECYCLE}), ("acceptance", {REQUESTS, GOLDENS})]
)
def test_a_stage_runs_its_own_tests_alone(stage: str, files: set[str]) -> None:
    """The first two files need ROS; the second and the last lie in the folders of the acceptance stage."""
    listed = tactful("test", stage, "--collect-only", "-q", LIFECYCLE, REQUESTS, LAYERS, GOLDENS)
    assert listed.returncode == 0, listed.stderr
    assert {line.partition("::")[0] for line in listed.stdout.splitlines() if "::" in line} == files


def test_its_help_explains_the_stages() -> None:
    shown = tactful("test", "--help")
    assert shown.returncode == 0
    assert all(f"{stage}:" in shown.stdout for stage in ("Unit", "Graph", "Acceptance"))
