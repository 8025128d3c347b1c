"""What a judge would be asked about a bag with a camera: the right pictures, and none where they are not allowed."""

import json
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.acceptance.conversation_bag import START_NS, robot, user, write_talk
from tests.command_line import tactful

LENGTH_S = 26
STEP = 9  # of grey from one second's picture to the next
TALK = [
    user(3, 4.5, "Hello, where can I find the whales?"),
    robot(13, 16, "You can find the whales upstairs, on the left."),
    user(17, 18, "Nobody listens to me here, I am really upset."),
    robot(19, 22, "Great! We have many postcards of whales."),
]

Ask = Callable[..., list[dict[str, Any]]]


def grey(second: int) -> bytes:
    _, jpeg = cv2.imencode(".jpg", np.full((48, 64, 3), 10 + STEP * second, np.uint8))
    return jpeg.tobytes()


def shown(folder: Path, prompt: dict[str, Any]) -> list[int]:
    """The seconds of the pictures in a prompt, by their grey."""
    files = [folder / part["file"] for part in prompt["parts"] if part["kind"] == "picture"]
    means = [float(np.asarray(cv2.imread(str(file))).mean()) for file in files]
    return [round((mean - 10) / STEP) for mean in means]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """The prompts that `tactful flags --prompts` writes into tmp_path/prompts, in the order of time."""
    bag = write_talk(tmp_path / "bag", TALK, LENGTH_S, pictures=[grey(second) for second in range(LENGTH_S + 2)])
    monkeypatch.setenv("TACTFUL_MODELS", str(tmp_path))

    def ask(*options: str) -> list[dict[str, Any]]:
        result = tactful("flags", bag, "--json", *options, "--prompts", str(tmp_path / "prompts"))
        assert result.returncode == 0, result.stderr
        paths = sorted((tmp_path / "prompts").glob("*.json"), key=lambda path: int(path.name.split("_")[0]))
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths]

    return ask


def test_each_prompt_holds_the_pictures_around_its_unit(asked: Ask, tmp_path: Path) -> None:
    prompts = asked("--context", "home")
    assert {one["unit"]["kind"] for one in prompts} == {"robot_turn", "person_turn", "silence"}
    for one in prompts:
        first, attributes = one["prompts"]
        seconds = shown(tmp_path / "prompts", first)
        onset_s, offset_s = ((one["unit"][name] - START_NS) / 1e9 for name in ("onset_ns", "offset_ns"))
        assert seconds == sorted(set(seconds))
        assert 1 <= len(seconds) <= 4
        assert onset_s - 6 <= seconds[0] <= seconds[-1] <= offset_s + 4
        assert (len(first["questions"]), len(attributes["questions"])) == (1, 7)
        assert all(len(q["prompt_digest"]) == 64 for q in (*first["questions"], *attributes["questions"]))
        assert all(part["conditional"] and "is a social" in part["asked_if"] for part in (attributes, *one["notes"]))
        (talk,) = [part["text"] for part in first["parts"] if part["kind"] == "quoted"]
        assert sum(line.startswith(">> ") for line in talk.splitlines()) == 1
    words = " ".join(part["text"] for one in prompts for part in one["prompts"][0]["parts"] if part["kind"] == "quoted")
    assert re.search(r">> \[\S+ s\] \([0-9.]+ s of silence", words)
    assert "many postcards" in words


@pytest.mark.parametrize("context", ["unspecified", "workplace", "education"])
def test_emotions_are_asked_of_words_alone_where_no_context_allows_more(
    asked: Ask, tmp_path: Path, context: str
) -> None:
    for one in asked("--context", context):
        first, seen, words = one["prompts"]
        assert shown(tmp_path / "prompts", first) == shown(tmp_path / "prompts", seen)
        assert not shown(tmp_path / "prompts", words)
        assert any("do not infer emotions" in part.get("text", "") for part in seen["parts"])
        (emotions,) = words["questions"]
        assert "what someone feels" in emotions["text"]
        assert not any("what someone feels" in question["text"] for question in seen["questions"])


def test_no_picture_goes_to_a_model_on_another_machine(asked: Ask, tmp_path: Path) -> None:
    (tmp_path / "far.yaml").write_text(
        "name: far\ntask: vision-language\nengine: openai\nsource: {url: 'http://judge.example:8000/v1'}\n"
        "quantization: bf16\nmax_images: 8\nlicence: MIT\n",
        encoding="utf-8",
    )
    units = asked("--context", "home", "--model", "far")
    assert units
    assert not any(shown(tmp_path / "prompts", prompt) for one in units for prompt in one["prompts"])


def test_only_its_owner_can_read_them(asked: Ask, tmp_path: Path) -> None:
    asked()
    files = list((tmp_path / "prompts").iterdir())
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "prompts").stat().st_mode) == 0o700
    assert {file.suffix for file in files} == {".json", ".jpg"}
