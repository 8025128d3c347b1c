"""`tactful bench check-items` on the published sets and on sets with a known flaw."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from norm_core.engines.sentences.sentence_encoder import MODEL, SentenceEncoder
from norm_core.runtime.time import WallClock
from sim_replays.runs.players import open_model
from sim_replays.suites.egogapbench import SUITE as EGOGAPBENCH
from sim_replays.suites.item_check import check_items, read_items
from tests.command_line import tactful

WORDS = (["oak", "elm", "ash", "yew", "fir"], ["tin", "zinc", "iron", "lead", "gold"])


def check(data: Path, *options: str | Path, code: int = 1) -> dict[str, Any]:
    ended = tactful("bench", "check-items", data, *options, "--json")
    assert ended.returncode == code, ended.stderr
    checked: dict[str, Any] = json.loads(ended.stdout)
    return checked


def scenes(folder: Path, count: int, right: int | None = None) -> Path:
    """EgoNormia's layout: options of words that say nothing, the right one at a place or at one in turn."""
    entries, draw = {}, random.Random(1)
    for number in range(count):
        actions, reasons = (draw.sample(words, 5) for words in WORDS)
        correct = number % 5 if right is None else right
        entry = {"behaviors": actions, "justifications": reasons, "correct": correct}
        entries[f"v{number}_1"] = entry | {
            "sensibles": [correct],
            "taxonomy": {},
            "desc": f"A room with {number} doors.",
        }
    (folder / "set.json").write_text(json.dumps(entries))
    return folder / "set.json"


def test_the_published_chance_stands_beside_controls_and_published_rows(shared_data: Path) -> None:
    robot = check(shared_data / "egonormia/ood_robot.json")
    assert [robot["rows"]["chance"][name]["value"] for name in ("both", "action")] == pytest.approx([4.0, 20.0])
    assert robot["rows"]["position"]["action"]["value"] == pytest.approx(900 / 11)  # the first in nine of eleven
    assert robot["published"]["rows"]["GPT-4o"][0] == 9.1
    assert "blind: encoder" in robot["rows"]
    asked = read_items(EGOGAPBENCH, shared_data / "egogapbench")
    blind = open_model(MODEL, WallClock())
    gap = check_items(EGOGAPBENCH, asked, SentenceEncoder(), blind, answers={}, progress=lambda name: None)
    chance = [round(figure.value, 1) for figure in gap.rows["chance"].values()]
    assert chance == [30.1, 33.3, 25.0, 30.1, 30.2, 50.0, 25.0]
    assert gap.rows["least repeated option"]["overall"].value > 85
    assert any(text.startswith("options alone") and "gpt-5.4 (medium)" in text for text in gap.warnings)


def test_a_sound_set_has_no_warning_and_a_flawed_one_is_named(tmp_path: Path) -> None:
    sound = check(scenes(tmp_path, 50), code=0)
    assert sound["warnings"] == []
    flawed = check(scenes(tmp_path, 50, right=2))
    assert any(text.startswith("position scores 100.0") for text in flawed["warnings"])


def test_an_answer_that_stands_in_the_scene_is_named(tmp_path: Path) -> None:
    data = scenes(tmp_path, 20, right=0)
    entries = json.loads(data.read_text())
    leaking = entries["v3_1"]
    leaking["behaviors"] = [f"wait for the {word}" for word in leaking["behaviors"]]
    leaking["desc"] = f"It is best to {leaking['behaviors'][0]}."
    data.write_text(json.dumps(entries))
    assert any("the right option stands in the scene or question of v3_1" in text for text in check(data)["warnings"])


def test_people_s_answers_count_where_given_and_a_model_s_everywhere(tmp_path: Path) -> None:
    data = scenes(tmp_path, 10, right=1)
    lines = [{"id": f"v{n}_1", "task": task, "answer": 1} for n in range(4) for task in ("action", "justification")]
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    rows = check(data, "--human", answers, "--answers", answers)["rows"]
    assert (rows["people"]["action"]["value"], rows["people"]["action"]["count"]) == (100, 4)
    assert rows["model"]["action"]["value"] == 40


def test_what_is_no_set_of_items_is_refused_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('[{"question": 1}]')
    (tmp_path / "empty.json").write_text("[]")
    for name in ("other.json", "absent.json", "empty.json"):
        ended = tactful("bench", "check-items", tmp_path / name)
        assert ended.returncode == 2
        assert "name the suite with --suite" in ended.stderr or "check the path" in ended.stderr
