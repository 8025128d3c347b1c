"""`tactful bench score --page`: what a run asked and got, a question at a time, in a browser."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from norm_core.runtime.errors import TactfulError
from sim_replays import frames, question_rows
from sim_replays.runs.results import run_page
from sim_replays.runs.results.run_folder import open_run
from tests.command_line import tactful
from tests.study_desk.browser import Browser, faults, inaccessible, needs_axe, needs_chromium

HOSTILE = "</script><img src=x onerror=\"document.title='taken'\"><b>Wave</b>"
ITEM = {
    "behaviors": [HOSTILE, "Wait until the person has passed.", "Open the door.", "Sing.", ""],
    "justifications": ["Waving is polite.", "People go first.", "Doors are heavy.", "Songs please.", ""],
    "correct": 1,
    "sensibles": [0, 1],
    "taxonomy": {"0": ["politeness"]},
    "desc": "A person comes towards the robot in a corridor.",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Runs of two items, with pictures and with words alone; of the first, the requests to its model are noted."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "items.json").write_text(json.dumps({"walk_1": ITEM, "door_1": {**ITEM, "correct": 2}}))
    for item in ("walk_1", "door_1"):
        (folder / "frames" / item).mkdir(parents=True)
        for second in range(12):
            encoded, jpeg = cv2.imencode(".jpg", np.full((480, 640, 3), 20 * second, np.uint8))
            assert encoded
            (folder / "frames" / item / f"{second:02}.jpg").write_bytes(jpeg.tobytes())
    both = folder / "video", folder / "pipeline"
    for out in both:
        result = tactful(
            *("bench", "run", "egonormia", "--data", folder / "items.json", "--setting", out.name, "--out", out),
            *("--transport", "direct"),
        )
        assert result.returncode == 0, result.stderr
    request = {
        "query_id": "walk_1:action",
        "step": "choose",
        "prompt": f"Which of these? {HOSTILE} Zanzibar",
        "pictures": [],
        "options": [HOSTILE, "Wait."],
        "reply": "B, because people go first.",
        "probabilities": [0.25, 0.75],
        "outcome": "answered",
        "reason": "",
        "prompt_tokens": 40,
        "completion_tokens": 7,
        "cached": False,
        "took_s": 0.5,
    }
    (both[0] / "asked.jsonl").write_text(f"{json.dumps(request)}\n{json.dumps(request)[:30]}", encoding="utf-8")
    return both


@pytest.fixture(scope="module")
def page(runs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "runs.html"
    result = tactful("bench", "score", *runs, "--page", path)
    assert result.returncode == 0, result.stderr
    assert f"{path}: 6 questions" in result.stderr
    return path.as_uri()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with Browser(tmp_path / "profile") as browser:
        yield browser


def details(browser: Browser) -> str:
    return str(browser.run("document.getElementById('details').innerText"))


@needs_chromium
def test_a_question_is_shown_with_all_that_led_to_its_answer(page: str, browser: Browser) -> None:
    browser.open(page)
    assert browser.run("document.querySelectorAll('[role=option]').length") == 6
    shown = details(browser)
    for text in (HOSTILE, "Pictures (8 of 12)", "✓ right", "chosen", "Run 1: ", "Steps", "Requests to the model (1)"):
        assert text in shown
    browser.run("document.querySelector('details.request').open = true")
    assert "Zanzibar" in details(browser)
    assert "B, because people go first." in details(browser)
    assert browser.run("Math.max(...[...document.images].map((image) => image.naturalWidth))") == 320
    assert "a run over DDS or without a model has no asked.jsonl" in browser.run("document.body.innerText")
    assert browser.run("document.title").startswith("egonormia: ")
    assert faults(browser) == []


@needs_chromium
def test_questions_are_chosen_by_keys_filters_and_search(page: str, browser: Browser) -> None:
    browser.open(page)
    browser.key("j")
    assert "Justification" in details(browser)
    browser.key("k")
    assert "Action" in details(browser)
    browser.key("/")
    browser.send("Input.insertText", text="zanzibar")
    assert browser.run("document.getElementById('count').textContent") == "1 of 6"
    browser.run("words.value = ''; words.dispatchEvent(new Event('input'))")
    choose = "(box, value) => { box.value = value; box.dispatchEvent(new Event('change')); }"
    browser.run(f"({choose})(task, 'sensible')")
    assert browser.run("document.getElementById('count').textContent") == "2 of 6"
    browser.run(f"({choose})(task, ''); ({choose})(verdict, 'second')")
    marks = browser.run("[...document.querySelectorAll('[role=option] .mark')].map((mark) => mark.innerText)")
    assert marks, "the encoder is right in the second run alone about some question"
    assert all("2: right" in mark and "1: right" not in mark for mark in marks)


@needs_chromium
@needs_axe
def test_the_page_is_accessible(page: str, browser: Browser) -> None:
    browser.open(page)
    assert inaccessible(browser) == []


@needs_chromium
def test_a_page_of_two_runs_counts_what_both_were_asked(
    runs: tuple[Path, Path], tmp_path: Path, browser: Browser
) -> None:
    alone, page = tmp_path / "alone", tmp_path / "page.html"
    command = ("bench", "run", "egonormia", "--data", runs[0].parent / "items.json", "--out", alone, "--limit", 1)
    assert tactful(*command, "--bare", "--model", "random", "--setting", "blind").returncode == 0
    assert tactful("bench", "score", runs[1], alone, "--page", page).returncode == 0
    browser.open(page.as_uri())
    tiles = browser.run("document.getElementById('tiles').innerText").split("\n")
    count = {name.lower(): value for name, value in zip(tiles[::2], tiles[1::2], strict=False)}
    assert (count["asked in both"], count["asked in run 1 alone"], count["not answered in run 2"]) == ("3", "3", "0")
    assert "asked in run 2 alone" not in count
    head = browser.run("document.getElementById('meta').innerText")
    assert "(the robot: the model inside our steps; setting pipeline)" in head
    assert "(the model alone; setting blind)" in head
    assert "not paired: " in browser.run("document.getElementById('notes').innerText")
    shown = details(browser)
    assert shown.index(str(ITEM["desc"])) < shown.index("Right answer")
    assert faults(browser) == []


def test_runs_differ_by_the_chosen_option_and_not_by_the_wording(runs: tuple[Path, Path], tmp_path: Path) -> None:
    again = shutil.copytree(runs[1], tmp_path / "again")
    answers = [json.loads(line) for line in (again / "raw.jsonl").read_text().splitlines()]
    answers[0]["answer"]["text"] = "In other words."
    answers[1]["answer"]["chosen"] = [(answers[1]["answer"]["chosen"][0] + 1) % 4]
    (again / "raw.jsonl").write_text("".join(f"{json.dumps(answer)}\n" for answer in answers[:-1]))
    questions = run_page.page_data([open_run(runs[1]), open_run(again)])["questions"]
    assert [question["differs"] for question in questions] == [False, True, False, False, False, False]
    assert [question["common"] for question in questions] == [True] * 5 + [False]  # the last is not asked yet


def test_a_page_is_of_one_or_two_runs(runs: tuple[Path, Path], tmp_path: Path) -> None:
    result = tactful("bench", "score", *runs, runs[0], "--page", tmp_path / "page.html")
    assert result.returncode == 2
    assert "--page: shows one or two runs, and 3 are named" in result.stderr


def test_a_page_of_many_pictures_and_prompts_stays_small_and_says_so(
    runs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_page, "PICTURE_BYTES", 1)
    monkeypatch.setattr(run_page, "PROMPT_BYTES", 1)
    data = run_page.page_data([open_run(runs[0])])
    name = data["runs"][0]["name"]
    assert data["notes"] == [
        f"{name}: 1 prompt left out, to keep this page small; see asked.jsonl",
        "pictures of 1 episode left out, to keep this page small",
    ]
    assert data["questions"][0]["answers"][0]["requests"][0]["reply"] == "B, because people go first."


def test_rows_hold_each_question_and_frames_name_their_extra(
    runs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = question_rows(runs[0])
    assert [(row["item"], row["task"]) for row in rows][:3] == [
        ("walk_1", task) for task in ("action", "justification", "sensible")
    ]
    action: dict[str, Any] = rows[0]
    assert action["right_texts"] == ["Wait until the person has passed."]
    assert action["is_right"] == (action["chosen_texts"] == action["right_texts"])
    assert (action["requests"], action["prompt_tokens"], rows[1]["requests"]) == (1, 40, 0)
    answers = [json.loads(line) for line in (runs[0] / "answers.jsonl").read_text().splitlines()]
    assert [row["order"][row["chosen"][0]] for row in rows if row["task"] == "action"] == [
        answer["answer"] for answer in answers if answer["task"] == "action"
    ]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(TactfulError, match=r"A data frame needs pandas.* study"):
        frames(runs[0])
