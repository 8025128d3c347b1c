"""A suite of one's own: what fails in its code is one line with its place, and no traceback."""

from pathlib import Path

import pytest

from tests.command_line import tactful

SUITE = """
from sim_replays.suites.own import Question, accuracy, multiple_choice

def read(path):
    yield Question(id="d", ask="Who?", options=("I", "you"), right=0)
    {in_read}

def figures(targets, predictions):
    {in_scorer}
    return accuracy(targets, predictions)

SUITE = multiple_choice("doors", read, figures=figures, columns=("accuracy",))
"""


@pytest.mark.parametrize(
    ("in_read", "in_scorer", "complaint"),
    [
        ("{}['house']", "", "suite.py:6: KeyError: 'house'; correct the suite or its data"),
        ("open(path / 'gone.jsonl')", "", "suite.py:6: FileNotFoundError: "),
        ("yield 3", "", "suite.py: AttributeError: 'int' object"),
        ("", "1 / 0", "suite.py:9: ZeroDivisionError: division by zero; correct the suite or its data"),
        ("", "return {}", "suite.py: its scorer gives no figure accuracy, which `columns` names; add it"),
    ],
)
def test_a_fault_in_a_suite_names_its_line(tmp_path: Path, in_read: str, in_scorer: str, complaint: str) -> None:
    (tmp_path / "suite.py").write_text(SUITE.format(in_read=in_read or "pass", in_scorer=in_scorer or "pass"))
    (tmp_path / "data").mkdir()
    (tmp_path / "answers.jsonl").write_text('{"id": "d", "answer": 0}')
    score = ("score", tmp_path, "--data", tmp_path / "data", "--predictions", tmp_path / "answers.jsonl")
    run = ("run", tmp_path, "--data", tmp_path / "data", "--bare", "--model", "random", "--out", tmp_path / "out")
    for command in (score, run):
        ended = tactful("bench", *command)
        assert ended.returncode == 2
        assert ended.stdout == ""
        assert complaint in " ".join(ended.stderr.split())
        assert "Traceback" not in ended.stderr
