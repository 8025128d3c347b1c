"""The table of issues covers every issue that the code raises."""

import ast
from collections.abc import Iterator
from pathlib import Path

from norm_core.runtime.issues import ISSUES

ROOT = Path(__file__).resolve().parents[3]
NODES = "ros2_ws/src/norm_nodes/norm_nodes"
FOLDERS = (
    "norm_core/engines",
    "norm_core/runtime",
    "norm_monitor",
    "action_selector",
    "study_desk",
    "sim_replays/drivers",
    NODES,
)


def test_every_issue_that_is_raised_has_help_and_all_help_an_issue() -> None:
    assert set(raised_issues()) == set(ISSUES)


def raised_issues() -> Iterator[str]:
    """The literal names in calls of raise_issue; a name with a variable part stands as its family."""
    families = [name for name in ISSUES if name.endswith("*")]
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                match node:
                    case ast.Call(func=ast.Attribute(attr="raise_issue"), args=[ast.Constant(value=str(name)), *_]):
                        yield next((f for f in families if name.startswith(f[:-1])), name)
                    case ast.Call(
                        func=ast.Attribute(attr="raise_issue"),
                        args=[ast.JoinedStr(values=[ast.Constant(value=str(prefix)), *_]), *_],
                    ):
                        yield f"{prefix}*"
