"""Every counter in the code has a meaning, and every meaning has a counter."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from norm_core.health.counters import MEANINGS, describe_parity, find_meaning
from norm_core.records.status import Counter
from norm_monitor.senses.camera.faults import CameraFault

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = (
    "norm_core/engines",
    "norm_core/health",
    "norm_core/runtime",
    "norm_monitor",
    "action_selector",
    "study_desk",
    "ros2_ws/src/norm_nodes/norm_nodes",
    "ros2_ws/src/norm_bench/norm_bench",
)
TALLIES = ("counts", "_tally")


def test_every_counter_has_a_meaning_and_every_meaning_a_counter() -> None:
    assert counted_names() == set(MEANINGS)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("judge_timed_out", "by outcome"),
        ("judge_load_failures", "attempts"),
        ("facts_expired", "by reason"),
        ("no_such_counter", ""),
    ],
)
def test_a_counter_of_a_family_has_its_own_meaning_or_the_family_s(name: str, word: str) -> None:
    assert word in find_meaning(name)
    assert bool(find_meaning(name)) == bool(word)


def counted_names() -> set[str]:
    """The literal names that are counted; a name with a variable part stands as its family."""
    names = {fault.value for fault in CameraFault}  # counted by the fault's value
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names.update(name for part in counter_expressions(node) for name in literals(part))
    return names


def counter_expressions(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement or call names a counter by, if it counts at all."""
    match node:
        case ast.Call(func=ast.Attribute(attr="count", value=receiver), args=[name, *_]):
            if ast.unparse(receiver).removeprefix("self.").lstrip("_") in {"health_log", "node.health_log"}:
                yield name
        case ast.Call(func=ast.Name(id="Counter"), keywords=keywords):
            yield from (keyword.value for keyword in keywords if keyword.arg == "name")
        case ast.Call(func=ast.Name(id="SoundError"), args=[name, *_]):
            yield name  # counted by the error's fault
        case ast.AugAssign(target=ast.Subscript(value=ast.Attribute(attr=attribute), slice=name)):
            if attribute in TALLIES:
                yield name


def literals(expression: ast.expr) -> Iterator[str]:
    match expression:
        case ast.Constant(value=str(name)):
            yield name
        case ast.IfExp(body=body, orelse=orelse):
            yield from (*literals(body), *literals(orelse))
        case ast.JoinedStr(values=[ast.Constant(value=str(prefix)), *_]):
            yield f"{prefix}*"


def test_what_sets_a_run_outside_parity_is_counted() -> None:
    note = describe_parity([Counter(name="windows_late", count=3), Counter(name="messages_lost", count=1)], 2)
    assert "1 messages lost, 3 windows closed late, 2 records dropped from a full queue" in note
