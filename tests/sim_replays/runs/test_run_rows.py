"""The rows of a run: what it asked and got, a question at a time."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from norm_core.runtime.errors import TactfulError
from sim_replays import frames, question_rows
from tests.command_line import tactful

ITEM = {
    "behaviors": ["Wave", "Wait until the person has passed.", "Open the door.", "Sing.", ""],
    "justifications": ["Waving is polite.", "People go first.", "Doors are heavy.", "Songs please.", ""],
    "correct": 1,
    "sensibles": [0, 1],
    "taxonomy": {"0": ["politeness"]},
    "desc": "A person comes towards the robot in a corridor.",
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of two items, of which the requests to its model are noted."""
    folder, out = tmp_path, tmp_path / "pipeline"
    (folder / "items.json").write_text(json.dumps({"walk_1": ITEM, "door_1": {**ITEM, "correct": 2}}))
    command = ("bench", "run", "egonormia", "--data", folder / "items.json", "--setting", "pipeline", "--out", out)
    result = tactful(*command, "--transport", "direct")
    assert result.returncode == 0, result.stderr
    request = {
        "query_id": "walk_1:action",
        "step": "choose",
        "prompt": "Which of these?",
        "pictures": [],
        "options": ["Wave", "Wait."],
        "reply": "B, because people go first.",
        "probabilities": [0.25, 0.75],
        "outcome": "answered",
        "reason": "",
        "prompt_tokens": 40,
        "completion_tokens": 7,
        "cached": False,
        "took_s": 0.5,
    }
    (out / "asked.jsonl").write_text(f"{json.dumps(request)}\n{json.dumps(request)[:30]}", encoding="utf-8")
    return out


def test_rows_hold_each_question_and_frames_name_their_extra(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = question_rows(run)
    assert [(row["item"], row["task"]) for row in rows][:3] == [
        ("walk_1", task) for task in ("action", "justification", "sensible")
    ]
    action: dict[str, Any] = rows[0]
    assert action["right_texts"] == ["Wait until the person has passed."]
    assert action["is_right"] == (action["chosen_texts"] == action["right_texts"])
    assert (action["requests"], action["prompt_tokens"], rows[1]["requests"]) == (1, 40, 0)
    answers = [json.loads(line) for line in (run / "answers.jsonl").read_text().splitlines()]
    assert [row["order"][row["chosen"][0]] for row in rows if row["task"] == "action"] == [
        answer["answer"] for answer in answers if answer["task"] == "action"
    ]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(TactfulError, match=r"A data frame needs pandas.* bench"):
        frames(run)
