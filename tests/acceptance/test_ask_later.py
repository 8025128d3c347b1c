"""A judge that a service asks later: what leaves in a batch, and what its answers make of a bag's flags."""

import json
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.acceptance.conversation_bag import robot, user, write_talk
from tests.command_line import tactful

LENGTH_S = 32
TALK = [
    user(3, 4.5, "Hello, where can I find the whales?"),
    robot(13, 16, "You can find the whales upstairs, on the left."),
    user(17, 18, "Nobody listens to me here, I am really upset."),
    robot(19, 22, "Great! We have many postcards of whales."),
    user(22.5, 23.5, "That is not what I said."),
    robot(24, 25.5, "They cost two pounds each."),
    user(26, 27, "Never mind."),
    robot(27.5, 29, "Have a good day."),
]
UPSET = "many postcards"

Lines = list[dict[str, Any]]
Ask = Callable[..., Lines]


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    _, jpeg = cv2.imencode(".jpg", np.full((48, 64, 3), 90, np.uint8))
    return write_talk(tmp_path / "bag", TALK, LENGTH_S, pictures=[jpeg.tobytes()] * (LENGTH_S + 2))


@pytest.fixture
def ask(bag: Path, tmp_path: Path) -> Ask:
    """The requests that `tactful flags --ask-later` writes into tmp_path/batch."""

    def ask(*options: str) -> Lines:
        result = tactful("flags", bag, "--summary", *options, "--ask-later", tmp_path / "batch")
        assert result.returncode == 0, result.stderr
        files = sorted((tmp_path / "batch").glob("*.jsonl"))
        requests = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        assert re.search(rf": {len(requests)} requests? with", result.stderr)
        return requests

    return ask


def text_of(request: dict[str, Any]) -> str:
    content = request["body"]["messages"][0]["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def pictures_of(request: dict[str, Any]) -> int:
    content = request["body"]["messages"][0]["content"]
    urls = [part["image_url"]["url"] for part in content if isinstance(part, dict) and part["type"] == "image_url"]
    assert all(url.startswith("data:image/jpeg;base64,/9j/") for url in urls)
    return len(urls)


def build_schema(request: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = request["body"]["response_format"]["json_schema"]["schema"]
    return schema


def coding(polarity: str, *attributes: str) -> dict[str, Any]:
    likely = {label: 0.96 if label == polarity else 0.02 for label in ("error", "competence", "ordinary")}
    note = {"rationale": "It misses that the person is upset.", "quote": UPSET, "correction": "Ask what is wrong."}
    return {"polarity": polarity, **likely, "attributes": list(attributes), **note}


def answer(custom_id: str, text: str, **choice: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    body = {"model": "judge-1", "choices": [{"message": message, "finish_reason": "stop", **choice}]}
    return {"custom_id": custom_id, "response": {"status_code": 200, "body": body}, "error": None}


def write_answers(folder: Path, lines: Lines, cut: str = "") -> None:
    (folder / "output.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines) + cut, encoding="utf-8")


def flags_with(bag: Path, answers: Path) -> tuple[Lines, str]:
    result = tactful("flags", bag, "--json", "--answers", answers)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), result.stderr


def test_a_minute_of_talk_is_one_request_that_any_such_service_takes(ask: Ask, tmp_path: Path) -> None:
    (request,) = ask("--model", "big-1")
    assert re.fullmatch(r"bag_talk_\d+", request["custom_id"])
    assert (request["method"], request["url"]) == ("POST", "/v1/chat/completions")
    assert request["body"]["model"] == "big-1"
    assert isinstance(request["body"]["messages"][0]["content"], str)  # without pictures, which stay here
    (fence,) = re.findall(r"^=== transcript.*?^===$", text_of(request), re.MULTILINE | re.DOTALL)
    assert re.findall(r"^>>(\w+) ", fence, re.MULTILINE) == build_schema(request)["required"]
    answer_schema = build_schema(request)["$defs"]["answer"]
    assert list(answer_schema["properties"])[:4] == ["polarity", "error", "competence", "ordinary"]
    folder = tmp_path / "batch"
    assert {stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())} == {0o700, 0o600}


@pytest.mark.parametrize(("context", "offers_emotions"), [("home", True), ("workplace", False)])
def test_pictures_leave_where_that_is_said_and_emotions_are_not_read_from_them(
    ask: Ask, context: str, offers_emotions: bool
) -> None:
    (request,) = ask("--pictures-may-leave", "--context", context)
    assert 1 <= pictures_of(request) <= 8
    assert ('"emotions"' in json.dumps(build_schema(request))) is offers_emotions
    assert ("do not infer emotions" in text_of(request)) is not offers_emotions


def test_answers_about_a_minute_make_flags_and_each_failure_is_counted(ask: Ask, bag: Path, tmp_path: Path) -> None:
    (request,) = ask()
    marks = dict(re.findall(r"^>>(\w+) \[[^]]*\] (.*)$", text_of(request), re.MULTILINE))
    assert list(marks) == build_schema(request)["required"] == list(build_schema(request)["properties"])
    (upset,) = [mark for mark, words in marks.items() if UPSET in words]
    codings = {mark: coding("error", "emotions") if mark == upset else coding("ordinary") for mark in marks}
    answers = tmp_path / "batch"
    unasked = {"R999": coding("error")}
    write_answers(answers, [answer(request["custom_id"], json.dumps(codings | unasked))], cut='{"custom_id": "')
    flags, said = flags_with(bag, answers)
    (flag,) = [flag for flag in flags if flag["rationale"].startswith("It misses")]
    assert (flag["polarity"], flag["correction"]) == ("error", "Ask what is wrong.")
    assert "emotions" in flag["attributes"]
    assert flag["provenance"]["model"] == "judge-1"
    assert re.fullmatch("[0-9a-f]{64}", flag["provenance"]["prompt_digest"])
    assert f"{len(marks)} answered" in said
    assert "1 line cannot be read" in said
    del codings[upset]
    write_answers(answers, [answer(request["custom_id"], json.dumps(codings))])
    flags, said = flags_with(bag, answers)
    assert not [flag for flag in flags if flag["rationale"].startswith("It misses")]
    assert f"{len(marks) - 1} answered, 1 unparsed" in said


def test_conflicting_options_are_refused_before_a_bag_runs(ask: Ask, bag: Path, tmp_path: Path) -> None:
    ask()
    batch, new = tmp_path / "batch", tmp_path / "new"
    for options, problem in (
        (("--ask-later", batch), "has requests already"),
        (("--ask-later", new, "--answers", batch), "exclude each other"),
        (("--ask-later", new, "--out", tmp_path / "run"), "exclude each other"),
        (("--answers", batch), "there are no answers"),
        (("--answers", tmp_path / "missing"), "there are no answers"),
    ):
        result = tactful("flags", bag, *options)
        assert result.returncode == 2
        assert problem in result.stderr
        assert not new.exists()


def test_answers_of_another_bag_and_conflicting_answers_are_named(bag: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    answers.mkdir()
    key, ordinary = "other_talk_0", json.dumps(coding("ordinary"))
    write_answers(answers, [answer(key, ordinary), answer(key, ordinary)])
    result = tactful("flags", bag, "--summary", "--answers", answers)
    assert result.returncode == 1
    assert "no answer is about these talks, but about other" in result.stderr
    write_answers(answers, [answer(key, ordinary), answer(key, "{}")])
    result = tactful("flags", bag, "--summary", "--answers", answers)
    assert result.returncode == 2
    assert f"1 request has different answers, such as {key}" in result.stderr


def test_encounters_are_asked_about_and_measured_with_the_answers(tmp_path: Path) -> None:
    talks = ("bench", "monitor", "--limit", 1)
    result = tactful(*talks, "--ask-later", tmp_path / "batch")
    assert result.returncode == 0, result.stderr
    requests = [json.loads(line) for line in (tmp_path / "batch" / "requests-0001.jsonl").read_text().splitlines()]
    told = {mark: coding("error", "emotions") for request in requests for mark in build_schema(request)["required"]}
    write_answers(tmp_path / "batch", [answer(request["custom_id"], json.dumps(told)) for request in requests])
    scores = json.loads(tactful(*talks, "--json", "--answers", tmp_path / "batch").stdout)
    judged = scores["judge"]
    assert (judged["model"], list(judged["outcomes"])) == ("judge-1", ["answered"])
    assert judged["errors"]["flags"] > scores["errors"]["flags"]
