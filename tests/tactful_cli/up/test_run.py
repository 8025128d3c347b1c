import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from tactful_cli.up import run
from tactful_cli.up.node_board import NodeBoard
from tests.node_records import node_status


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    text = io.StringIO()
    monkeypatch.setattr(run, "out", Console(file=text, width=80))
    return text


def test_what_is_missing_is_told_in_lines_where_nobody_reads_a_table(printed: io.StringIO) -> None:
    board = NodeBoard(["monitor"], "/tactful")
    lacks = "robot speech: nobody publishes /robot_said; " + "start whatever publishes it " * 8
    board.take_launch(["monitor"], 0, 0)
    board.take_status(node_status(1, node="/tactful/monitor", reasons=(lacks,)), 1.0)
    run.show(board)
    assert printed.getvalue().splitlines() == [f"monitor: {lacks}"]


def test_folders_that_killed_runs_left_are_removed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    left, own, other = (tmp_path / f"tactful-up-{name}" for name in (f"{ended.pid}-a1", f"{os.getpid()}-b2", "notes"))
    for folder in (left, own, other):
        folder.mkdir()
        folder.joinpath("monitor.json").touch()
    run.remove_leftovers(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([own, other])
