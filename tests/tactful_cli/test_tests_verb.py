"""`tactful test`: which tests belong to which stage."""

import pytest

from tests.command_line import tactful_process
from tests.conftest import part_of

LIFECYCLE, WATCH, LAYERS, GOLDENS = (
    f"tests/{name}.py"
    for name in (
        "norm_nodes/test_lifecycle",
        "acceptance/test_watch",
        "test_import_layers",
        "goldens/test_goldens",
    )
)


@pytest.mark.parametrize(("stage", "files"), [("graph", {LIFECYCLE}), ("acceptance", {WATCH, GOLDENS})])
def test_a_stage_runs_its_own_tests_alone(stage: str, files: set[str]) -> None:
    """The first two files need ROS; the second and the last lie in the folders of the acceptance stage."""
    listed = tactful_process("test", stage, "--collect-only", "-q", LIFECYCLE, WATCH, LAYERS, GOLDENS)
    assert listed.returncode == 0, listed.stderr
    assert {line.partition("::")[0] for line in listed.stdout.splitlines() if "::" in line} == files


def test_parts_hold_each_test_once() -> None:
    parts = [part_of(range(47), f"{number}/12") for number in range(1, 13)]
    assert [item for part in parts for item in part] == list(range(47))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert list(part_of(range(47), "")) == []
