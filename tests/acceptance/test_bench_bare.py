"""`tactful bench run --bare`: a model alone, asked as its paper asks; the robot's steps with their controls apart."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.command_line import tactful
from tests.norm_core.engines.fake_server import FakeServer, describe_model, serving
from tests.sim_replays.requested_data import hsri_folder, videonorms_folder

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/benchmarks.md"
REFERENCE = PAGE.parents[1] / "reference/suites.md"
PROMPT = 'Stand here.\nOptions:\nA) wait\nB) bat\nC) catch\nRespond with JSON: { "answer": "A" | "B" | "C" }\n'
# What a model may say to an item whose right option is B, and whether that counts as right.
REPLIES = {
    '{"answer": "B", "rationale": "near"}': True,
    '<think>A or C?</think>{"answer": "B"}': True,
    '```json\n{"answer": "B) bat"}\n```': True,
    "The answer is **B**.": True,
    '{"answer": "A"}': False,
    "It could be A or B.": False,
}


@pytest.fixture
def server(tmp_path: Path, own_models: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with serving() as server:
        describe_model(own_models, "vlm", server.url)
        yield server


def says(server: FakeServer, reply: Callable[[str], str]) -> list[list[dict[str, Any]]]:
    """Let the server reply to the words of a prompt; return where it keeps the parts of each request."""
    requests: list[list[dict[str, Any]]] = []

    def complete(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        content = body["messages"][0]["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        requests.append(parts)
        text = reply("\n".join(part["text"] for part in parts if part["type"] == "text"))
        return 200, {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": {}}

    server.complete = complete  # type: ignore[method-assign]
    return requests


def bundles(folder: Path, count: int) -> Path:
    """Items of three options in the dataset's layout, one to a picture, each with its own prompt."""
    (folder / "images").mkdir(parents=True)
    lines = []
    for number in range(count):
        item = {
            "uid": f"i{number}",
            "options": {"A": "wait", "B": "bat", "C": "catch"},
            "option_labels": {"A": "motor_a", "B": "correct", "C": "motor_b"},
            "correct_letter": "B",
            "cand_kind": "direct",
            "eval_prompt": f"Item {number}. {PROMPT}",
        }
        agents = {"A": {"engagement": "wait"}, "B": {"engagement": "catch"}}
        lines.append({"image_id": number, "file_name": f"{number}.jpg", "agents": agents, "mcq_items": [item]})
        encoded, jpeg = cv2.imencode(".jpg", np.full((24, 32, 3), 20 + number, np.uint8))
        assert encoded
        (folder / f"images/{number}.jpg").write_bytes(jpeg.tobytes())
    (folder / "dev_default.bundles.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def run(suite: str, data: Path, out: Path, *options: str, **environment: str) -> dict[str, Any]:
    command = ("bench", "run", suite, "--data", data, "--out", out, *options, "--json")
    ended = tactful(*command, **environment)
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(ended.stdout))


def test_a_random_model_is_at_chance_and_inflated_inside_the_steps(shared_data: Path, tmp_path: Path) -> None:
    data = shared_data / "egogapbench"
    bare = run("egogapbench", data, tmp_path / "bare", "--bare", "--setting", "blind", "--model", "random")
    assert bare["outcomes"]["answered"] == 590
    assert bare["kind"] == "model"
    for name, chance in (("overall", 30.1), ("n3", 33.3), ("n4", 25.0), ("motor_intrusion", 50.0)):
        low, high = bare["intervals"][name]
        assert low <= chance <= high
        assert bare["controls"]["uniform"][name] == pytest.approx(chance, abs=0.06)
    robot = run(
        *("egogapbench", data, tmp_path / "robot", "--setting", "others-given", "--limit", "60"),
        *("--transport", "direct"),
    )
    assert robot["kind"] == "robot"
    assert robot["controls"]["random model"]["overall"] > 50 > robot["controls"]["uniform"]["overall"]
    headline = robot["headline"]
    assert headline["difference"] == pytest.approx(robot["overall"] - headline["random_model"])
    assert headline["interval"][0] < headline["difference"] < headline["interval"][1]
    assert any("others' actions of the dataset" in note for note in notes(tmp_path / "robot", robot))


@pytest.mark.parametrize(
    ("suite", "columns"),
    [
        ("egonormia", ("both", "action", "justification")),
        ("hsri", ("error3_accuracy", "error2_accuracy", "multi_accuracy", "pre", "post", "rationale", "correction")),
        ("videonorms", ("f1_adherence", "f1_violation", "evidence_f1_adherence")),
    ],
)
def test_a_random_model_is_at_chance_in_each_suite(
    shared_data: Path, tmp_path: Path, suite: str, columns: tuple[str, ...]
) -> None:
    folders = {"hsri": hsri_folder, "videonorms": videonorms_folder}
    data = folders[suite](tmp_path / "data", 60) if suite in folders else shared_data / "egonormia/ood_robot.json"
    found = run(suite, data, tmp_path / "run", "--bare", "--setting", "blind", "--model", "random")
    assert found["outcomes"]["answered"] == found["questions"]
    for name in columns:
        chance = found["controls"]["uniform"][name]
        error = (chance * (100 - chance) / found["counts"][name]) ** 0.5
        assert abs(found[name] - chance) < 3 * error


def notes(out: Path, plain: dict[str, Any]) -> list[str]:
    asked = json.loads((out / "config.json").read_text())["asking"]
    command = ("bench", "run", "egogapbench", "--data", asked["data"], "--setting", asked["setting"], "--out", out)
    ended = tactful(*command, "--limit", asked["limit"], "--transport", "direct")
    assert "over the same steps with a model that answers at random: overall" in ended.stdout
    assert plain["suite"] == "egogapbench"
    return [line for line in ended.stdout.splitlines() if line.startswith("note:")]


def test_the_dataset_s_own_prompt_is_asked_and_the_reply_is_read(server: FakeServer, tmp_path: Path) -> None:
    replies = list(REPLIES)
    requests = says(server, lambda text: replies[int(text.split(".")[0].removeprefix("Item "))])
    data = bundles(tmp_path / "data", len(replies))
    found = run("egogapbench", data, tmp_path / "run", "--bare", "--model", "vlm")
    assert [part["type"] for part in requests[0]] == ["image_url", "text"]
    assert sorted(parts[-1]["text"] for parts in requests) == [f"Item {n}. {PROMPT}" for n in range(len(replies))]
    assert found["overall"] == pytest.approx(100 * sum(REPLIES.values()) / len(replies), abs=0.01)
    assert found["outcomes"]["unparsed"] == 1
    assert found["read_leniently"] == 2
    assert found["controls"].keys() == {"uniform"}


@pytest.mark.parametrize("style", ["default", "exclusion"])
def test_the_exclusion_is_one_instruction_more(server: FakeServer, tmp_path: Path, style: str) -> None:
    requests = says(server, lambda text: '{"answer": "B"}')
    found = run(
        "egogapbench", bundles(tmp_path / "data", 1), tmp_path / "run", "--bare", "--model", "vlm", "--style", style
    )
    [[_, text]] = requests
    assert text["text"].startswith(f"Item 0. {PROMPT.rstrip()}")
    assert ("not open to you" in text["text"]) == (style == "exclusion")
    assert found["intervals"]["overall"][0] < 100  # one right answer is no certainty


def test_a_justification_is_asked_for_the_action_that_was_chosen(
    server: FakeServer, shared_data: Path, tmp_path: Path
) -> None:
    def reply(text: str) -> str:
        if "a list of all numbers" in text:
            return "Some are fine.\n[1, 3]"
        return "First I look.\n4" if "this was chosen" in text else "Let me think.\n2"

    requests = says(server, reply)
    data = shared_data / "egonormia/ood_robot.json"
    found = run("egonormia", data, tmp_path / "run", "--bare", "--setting", "blind", "--model", "vlm", "--limit", "2")
    assert found["outcomes"]["answered"] == 6
    assert found["read_leniently"] == 0
    action, justification, sensible = (parts[0]["text"] for parts in requests[:3])
    second = next(line for line in action.splitlines() if line.startswith("2. ")).removeprefix("2. ")
    assert f"this was chosen:\n{second}\n" in justification
    assert re.search(r"^\d\. None$", action, re.MULTILINE)
    assert "None is among them" in sensible


def test_a_question_on_a_failed_action_fails_with_it(server: FakeServer, shared_data: Path, tmp_path: Path) -> None:
    said = {"this was chosen": "4", "a list of all numbers": "[1]"}
    says(server, lambda text: next((reply for asked, reply in said.items() if asked in text), "Hard to say."))
    data = shared_data / "egonormia/ood_robot.json"
    found = run("egonormia", data, tmp_path / "run", "--bare", "--setting", "blind", "--model", "vlm", "--limit", "1")
    assert found["outcomes_by_task"]["justification"]["unparsed"] == 1
    assert found["both"] == 0.0


def test_a_label_and_its_evidence_come_in_one_answer(server: FakeServer, tmp_path: Path) -> None:
    def reply(text: str) -> str:
        if '"verbal"' in text:
            return '{"label": "violation", "verbal": "She says hi.", "nonverbal": "She waves."}'
        return "Adherence/Violation: Adherence" if '"label"' in text else '{"norm": "Greet people."}'

    requests = says(server, lambda text: reply(text).replace("violation", "违反") if "规范" in text else reply(text))
    data = videonorms_folder(tmp_path / "data")
    found = run("videonorms", data, tmp_path / "run", "--bare", "--setting", "text", "--model", "vlm")
    assert found["outcomes"]["answered"] == 12
    assert (found["f1_violation"], found["evidence_f1_adherence"]) == (0.0, 0.0)  # task 2 is not task 1 again
    english = next(parts[0]["text"] for parts in requests if "Category of the norm: greeting" in parts[0]["text"])
    assert "> ANNA: Hello there." in english
    assert "begins 0 s into the clip" in english


def test_attributes_are_one_multiple_choice(server: FakeServer, tmp_path: Path) -> None:
    replies = {"letters of all": "(A) and (C)", "with the number": "(2)", "True or False": "False"}
    requests = says(server, lambda text: next((said for end, said in replies.items() if end in text), "It is (B)."))
    data = hsri_folder(tmp_path / "data")
    (tmp_path / "only.txt").write_text("s0 s1")
    found = run(
        *("hsri", data, tmp_path / "run", "--bare", "--setting", "text", "--model", "vlm"),
        *("--only", str(tmp_path / "only.txt")),
    )
    assert found["outcomes"]["answered"] == found["questions"]
    assert found["units_accuracy"] is None  # a task of ours and not of the paper
    attributes = {parts[0]["text"] for parts in requests if "(G) Social norms and routines" in parts[0]["text"]}
    assert len(attributes) == 2  # one request a segment, not seven


def test_words_alone_do_not_stand_for_pictures(tmp_path: Path, own_models: Path) -> None:
    describe_model(own_models, "far", "http://192.0.2.1:1/v1")
    data = bundles(tmp_path / "data", 2)
    command = ("bench", "run", "egogapbench", "--data", data, "--out", tmp_path / "run", "--bare", "--model", "far")
    assert tactful(*command).returncode == 1
    answers = [json.loads(line) for line in (tmp_path / "run/answers.jsonl").read_text().splitlines()]
    assert [answer["outcome"] for answer in answers] == ["invalid", "invalid"]
    assert all("--pictures-may-leave" in answer["reason"] for answer in answers)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--model", "vlm", "--transport", "dds"), "no node is in it"),
        (("--model", "encoder"), "the sentence encoder writes no text"),
        (("--model", "vlm", "--setting", "others-given"), "'others-given' is of the robot's steps"),
        (("--model", "vlm", "--without", "veto"), "--without and --precedents are of the selector"),
    ],
)
def test_what_a_model_alone_has_not_is_refused(
    server: FakeServer, tmp_path: Path, options: tuple[str, ...], complaint: str
) -> None:
    data = bundles(tmp_path / "data", 1)
    ended = tactful("bench", "run", "egogapbench", "--data", data, "--out", tmp_path / "run", "--bare", *options)
    assert ended.returncode == 2
    assert complaint in ended.stderr.replace("\n", " ")


def test_the_leaderboard_keeps_kinds_settings_and_parts_apart(tmp_path: Path) -> None:
    data = bundles(tmp_path / "data", 6)
    bare = ("--bare", "--setting", "blind", "--model", "random")
    run("egogapbench", data, tmp_path / "whole", *bare)
    run("egogapbench", data, tmp_path / "part", *bare, "--limit", "2")
    run("egogapbench", data, tmp_path / "robot", "--setting", "others-given", "--transport", "direct")
    printed = tactful("bench", "score", tmp_path / "whole", tmp_path / "part", tmp_path / "robot").stdout
    titles = [
        "the model alone",
        "the robot: the model inside our steps",
        "the model alone, a part of the items",
        "published: models alone, on the paper's data",
    ]
    assert [line.strip() for line in printed.splitlines() if line.strip() in titles] == titles
    [head] = [line.split("┃") for line in printed.splitlines() if "over random model" in line]
    robot = next(line.split("│") for line in printed.splitlines() if "others-given" in line)
    cells = dict(zip([name.strip() for name in head], robot, strict=True))
    assert cells["text from an oracle"].strip() == "others' actions"
    assert "[" in cells["over random model"]
    assert "gpt-5.4" in printed
    assert "gpt-5.4" not in tactful("bench", "score", tmp_path / "robot").stdout


def python_on(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_the_suite_that_the_page_shows_runs_from_its_folder(server: FakeServer, tmp_path: Path) -> None:
    folder = tmp_path / "doors"
    (folder / "data").mkdir(parents=True)
    [shown] = python_on(PAGE)
    assert len(shown.splitlines()) <= 35
    (folder / "suite.py").write_text(shown)
    options = ["Go first.", "Hold the door."]
    rows = [
        {"id": f"d{number}", "house": f"h{number}", "scene": f"Door {number}.", "options": options, "right": number % 2}
        for number in range(4)
    ]
    (folder / "data/doors.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "known.jsonl").write_text("".join(f"{json.dumps({'id': row['id'], 'answer': 1})}\n" for row in rows))
    requests = says(server, lambda text: "(A)" if "Door 0" in text else "I hold the door.")
    found = run(str(folder), folder / "data", tmp_path / "bare", "--bare", "--model", "vlm")
    assert (found["suite"], found["accuracy"], found["outcomes"]["answered"]) == ("doors", 75.0, 4)
    assert requests[0][0]["text"].endswith(
        "What do you do next?\n(A) Go first.\n(B) Hold the door.\nAnswer with the letter."
    )
    robot = run(str(folder), folder / "data", tmp_path / "robot", "--setting", "given", "--transport", "direct")
    assert set(robot["controls"]) == {"random model", "uniform"}
    assert robot["headline"]["figure"] == "accuracy"
    compared = tactful("bench", "score", tmp_path / "bare", tmp_path / "robot")
    assert compared.returncode == 0
    assert "paper" not in compared.stdout
    assert "is of the model alone" in compared.stdout
    assert "only 1st" not in compared.stdout
    [scored] = python_on(REFERENCE)
    graded = tmp_path / "graded"
    shutil.copytree(folder, graded)
    (graded / "suite.py").write_text(shown.partition("SUITE = ")[0] + scored)
    (graded / "data/pictures/d1").mkdir(parents=True)
    for second in range(2):
        cv2.imwrite(str(graded / f"data/pictures/d1/{second}.jpg"), np.full((24, 32, 3), 90 * second, np.uint8))
    before = len(requests)
    found = run(str(graded), graded / "data", tmp_path / "graded-run", "--bare", "--model", "vlm")
    assert (found["accuracy"], found["first"], found["controls"]["uniform"]["first"]) == (75.0, 25.0, 50.0)
    assert [len(parts) for parts in requests[before:]].count(3) == 1  # two pictures before the words
    (folder / "known.jsonl").write_text(json.dumps({"id": "d1", "answer": 1}))
    ended = tactful("bench", "run", folder, "--data", folder / "data", "--setting", "given", "--out", tmp_path / "no")
    assert "its known answer scores accuracy 25.0 and should score 50.0" in ended.stderr.replace("\n", " ")


def test_an_installed_package_names_its_suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "doors_suite.py").write_text(
        "from sim_replays.suites.own import Question, multiple_choice\n"
        "SUITE = multiple_choice('doors', lambda path: [Question(id='d', ask='Who?', options=('I', 'you'), right=0)])\n"
        "NONE = 'no suite'\n"
    )
    info = tmp_path / "doors-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: doors\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[tactful.suites]\ndoors = doors_suite:SUITE\ngone = doors_suite:GONE\nnone = doors_suite:NONE\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/d.txt").touch()
    found = run("doors", tmp_path / "data", tmp_path / "run", "--bare", "--model", "random")
    assert (found["suite"], found["questions"]) == ("doors", 1)
    for name, complaint in (("gone", "cannot be loaded"), ("none", "gives str"), ("dors", "did you mean doors?")):
        ended = tactful("bench", "run", name, "--data", tmp_path / "data", "--bare", "--out", tmp_path / name)
        assert complaint in ended.stderr.replace("\n", " ")
