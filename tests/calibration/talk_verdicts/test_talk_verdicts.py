"""`python -m calibration.talk_verdicts`: the monitor's reading of machine turns against people's verdicts."""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest.mock import patch

import pytest

from calibration.command import run_command
from calibration.talk_verdicts.__main__ import talk_verdicts
from calibration.talk_verdicts.readings import monitor_reading
from calibration.talk_verdicts.talk_file import Talk
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.context.meaning import EncoderMatcher

GOOD = ("Where is the lift?", "The lift is behind you, next to the stairs.", "Great, thank you.")
BAD = ("My mother died yesterday.", "Ha ha, that is funny!", "That was not funny at all.")


@pytest.fixture(scope="module")
def meaning() -> EncoderMatcher:
    return EncoderMatcher.shipped()


@pytest.fixture(autouse=True)
def _loaded_once(meaning: EncoderMatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EncoderMatcher, "shipped", lambda **_: meaning)


def talk(name: str, corpus: str, words: tuple[str, str, str], verdict: dict[str, Any], **times: float) -> str:
    starts = dict(zip(range(3), times.values(), strict=True)) if times else {}
    turns: list[dict[str, Any]] = [
        {"by": by, "text": text, **({"start_s": starts[n]} if starts else {})}
        for n, (by, text) in enumerate(zip(("person", "machine", "person"), words, strict=True))
    ]
    turns[1] |= verdict
    return json.dumps({"id": name, "corpus": corpus, "turns": turns})


def votes(none: int, possible: int, breakdown: int) -> dict[str, Any]:
    return {"votes": {"no_breakdown": none, "possible_breakdown": possible, "breakdown": breakdown}}


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    file = tmp_path / "talks.jsonl"
    lines = [talk(f"chat/{n}", "chat-a", GOOD, votes(25, 3, 2)) for n in range(4)]
    lines += [talk(f"chat/bad{n}", "chat-b" if n else "chat-a", BAD, votes(1, 4, 25)) for n in range(3)]
    lines += [talk(f"task/{n}", "task", GOOD, {"rating": [4, 5, 5]}, a=0.5, b=2.5, c=6.0) for n in range(2)]
    lines += [talk("task/late", "task", GOOD, {"rating": [2, 1, 3]}, a=0.5, b=30.0, c=34.0)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def command(*options: object) -> CompletedProcess[str]:
    """Run the command in this process."""
    arguments = ["talk_verdicts", *map(str, options)]
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", arguments),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        run_command(talk_verdicts)
    code = ended.value.code
    return CompletedProcess(arguments, code if isinstance(code, int) else 0, out.getvalue(), err.getvalue())


def measured(*options: object) -> dict[str, dict[str, Any]]:
    result = command(*options, "--json")
    assert result.returncode == 0, result.stderr
    return {one["name"]: one for one in json.loads(result.stdout)["corpora"]}


def test_each_corpus_and_each_family_is_scored_with_intervals_and_controls(talks: Path) -> None:
    scores = measured(talks)
    assert list(scores) == ["chat", "chat-a", "chat-b", "task"]
    chat = scores["chat"]
    assert (chat["talks"], chat["turns"], chat["read_by"]) == (7, 7, "words")
    assert chat["fault_share"] == pytest.approx(3 / 7)
    assert chat["auc"] == chat["auc_at_once"] == 1
    assert chat["auc_interval"] == [1, 1]
    assert set(chat["controls"]) == {"length", "turn_alone", "next_words_alone"}
    assert chat["annotators"]["auc"] > 0.8
    assert scores["chat-b"]["auc"] is None  # nothing but faults
    assert measured(talks) == scores


def test_times_reach_the_whole_monitor(talks: Path) -> None:
    task = measured(talks)["task"]
    assert task["read_by"] == "words and times"
    assert task["auc_at_once"] == 0.5  # the words are the same
    assert task["auc"] == 1  # one answer came late


def test_a_pace_gives_times_so_that_flags_of_ordinary_turns_are_counted(talks: Path) -> None:
    scores = measured(talks, "--pace", 0.8)
    assert (scores["chat"]["read_by"], measured(talks)["chat"]["ordinary"]) == ("words and times", None)
    late = scores["task"]["ordinary"]  # where times are known they stay
    assert late["turns"] == 2
    assert late["keen"]["flags_per_100"] == 0
    assert late["keen"]["flags_per_100_of_faults"] == 100
    assert late["keen"]["flags_per_100_of_faults_interval"] == [100, 100]
    assert scores["chat"]["ordinary"]["turns"] == 0
    assert scores["chat"]["ordinary"]["quiet"]["flags_per_100"] is None


def test_turns_that_follow_at_once_are_read_as_one(meaning: EncoderMatcher) -> None:
    said = ((0.5, "person", BAD[0]), (3.0, "machine", "Ha ha,"), (4.0, "machine", "that is funny!"))
    turns = [
        {"by": by, "text": text, "start_s": at_s, **(votes(0, 0, 1) if by == "machine" else {})}
        for at_s, by, text in said
    ]
    spoken = Talk.model_validate({"id": "a", "corpus": "a", "turns": turns})
    scores = monitor_reading(spoken, meaning, ThresholdTable.shipped())
    assert scores[0] == scores[1] is not None


def test_a_judge_stands_private_path_the_monitor(talks: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    rows = [{"talk": f"chat/{n}", "n": 1, "fault": 0.9, "good": 0.1} for n in range(4)]
    rows += [{"talk": f"chat/bad{n}", "n": 1, "fault": 0.2} for n in range(2)]
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    chat = measured(talks, "--answers", answers)["chat"]
    assert (chat["turns"], chat["unanswered"], chat["read_by"], chat["auc"]) == (6, 1, "answers", 0)


def test_a_public_corpus_is_imported_and_shown(tmp_path: Path) -> None:
    rows = [
        {"u1": "你养狗吗？", "b1": "我养狗。", "u2": "什么狗？", "b2": "我没有狗。", "label": n % 4} for n in range(4)
    ]
    (tmp_path / "cdconv.txt").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    out = tmp_path / "out.jsonl"
    result = command("--corpus", "cdconv", "--folder", tmp_path, "--out", out, "--limit", 3)
    assert result.returncode == 0, result.stderr
    assert "cdconv" in result.stdout
    assert len(out.read_text(encoding="utf-8").splitlines()) == 3
    assert measured(out)["cdconv"]["fault_share"] == pytest.approx(2 / 3)


def test_answers_about_other_talks_are_named(talks: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    answers.write_text(json.dumps({"talk": "elsewhere", "n": 1, "fault": 0.5}), encoding="utf-8")
    result = command(talks, "--answers", answers)
    assert result.returncode == 2
    assert "1 turn answered, such as 'elsewhere' (turn 1)" in " ".join(result.stderr.split())


GOOD_LINE = talk("a", "b", GOOD, {})


@pytest.mark.parametrize(
    ("content", "options", "problem"),
    [
        ("{", (), "line 1: is not JSON"),
        (GOOD_LINE + "\n" + GOOD_LINE, (), "line 2: id 'a' stands in"),
        (GOOD_LINE.replace("machine", "alien"), (), "turns.1.by: input should be"),
        (talk("a", "b", GOOD, votes(0, 0, 0)), (), "votes are all 0; leave them out"),
        (talk("a", "b", GOOD, {"rating": [6]}), (), "line 1: turns.1.rating.0"),
        (talk("a", "b", GOOD, {**votes(1, 0, 0), "rating": [2]}), (), "has votes and a rating; keep one"),
        (talk("a", "b", GOOD, votes(1, 0, 0)).replace("machine", "person"), (), "move it to the machine's turn"),
        (GOOD_LINE, (), "no machine turn has a verdict of people; "),
        ("\n", (), "holds no talks"),
        (GOOD_LINE, ("--corpus", "cdcnov", "--folder", "."), "did you mean cdconv?"),
        (GOOD_LINE, ("--corpus", "cdconv", "--folder", "EMPTY"), "holds no cdconv.txt; fetch"),
        (GOOD_LINE, ("--corpus", "cdconv"), "belong together"),
    ],
)
def test_unusable_input_names_its_place_and_the_remedy(
    content: str, options: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "talks.jsonl"
    file.write_text(content, encoding="utf-8")
    result = command(file, *options)
    assert result.returncode == 2
    assert problem in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
