"""`python -m calibration.talk_verdicts`: the monitor's reading of machine turns against people's verdicts."""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from calibration.command import run_command
from calibration.talk_verdicts.__main__ import talk_verdicts
from calibration.talk_verdicts.readings import CorpusReading, monitor_reading, score_corpus
from calibration.talk_verdicts.rejection_fit import MeasuredTurn, estimate_left_out
from calibration.talk_verdicts.talk_file import JudgedTurn, Talk, TalkTurn, Votes
from norm_monitor.assessment.rejection import RejectionModel
from norm_monitor.assessment.threshold_table import ThresholdTable
from norm_monitor.context.exchange import Exchange
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
    lines = [talk(f"chat/{n}", "chat", GOOD, votes(25, 3, 2)) for n in range(4)]
    lines += [talk(f"chat/bad{n}", "bad" if n else "chat", BAD, votes(1, 4, 25)) for n in range(3)]
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


def test_each_corpus_is_scored_with_intervals_and_controls(talks: Path) -> None:
    scores = measured(talks)
    assert list(scores) == ["chat", "bad", "task"]
    chat = scores["chat"]
    assert (chat["talks"], chat["turns"], chat["read_by"]) == (5, 5, "words")
    assert chat["fault_share"] == pytest.approx(1 / 5)
    assert chat["auc"] == chat["auc_at_once"] == 1
    assert chat["auc_interval"] == [1, 1]
    assert chat["length"]["auc"] == 0
    assert chat["rejection"] is None  # the talk has no times
    assert chat["annotators"]["auc_of_half"] > 0.8
    assert scores["bad"]["auc"] is None  # nothing but faults
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


def test_rejections_are_ranked_by_weights_of_other_people() -> None:
    def turn(number: int) -> MeasuredTurn:
        is_repeated, person = number % 3 == 0, number % 20
        is_fault = is_repeated is (person > 0)  # one person's verdicts are the reverse of everybody else's
        judged = judge(Votes(breakdown=1) if is_fault else Votes(no_breakdown=1), group=str(person))
        facts = {"person_says_again": float(is_repeated)}
        return MeasuredTurn(judged=judged, error=None, at_once={}, with_reaction=facts)

    turns = [turn(number) for number in range(1000)]
    with_reaction, at_once = estimate_left_out(turns)
    repeated = np.array([turn.with_reaction["person_says_again"] for turn in turns], bool)
    is_reversed = np.array([turn.judged.group == "0" for turn in turns])
    assert with_reaction[repeated & is_reversed].min() > with_reaction[~repeated].max()
    assert len(set(at_once[is_reversed])) == 1


def test_weights_of_rejections_are_shipped_on_request(
    talks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calibration.talk_verdicts.__main__.SHIPPED", path := tmp_path / "weights.json")
    scores = measured(talks, "--pace", 0.8, "--refit", "--write")
    assert all(score["rejection"] for score in scores.values())
    assert RejectionModel.load(path).fitted_on == {"people": "10", "turns": "10", "of them rejected": "4"}


def test_turns_that_follow_at_once_are_read_as_one(meaning: EncoderMatcher) -> None:
    said = ((0.5, "person", BAD[0]), (3.0, "machine", "Ha ha,"), (4.0, "machine", "that is funny!"))
    turns = [
        {"by": by, "text": text, "start_s": at_s, **(votes(0, 0, 1) if by == "machine" else {})}
        for at_s, by, text in said
    ]
    spoken = Talk.model_validate({"id": "a", "corpus": "a", "turns": turns})
    first, second = monitor_reading(spoken, meaning, ThresholdTable.shipped())
    assert first.error is not None
    assert first.at_once
    assert first == replace(second, judged=first.judged)


def test_a_judge_stands_private_path_the_monitor(talks: Path, tmp_path: Path) -> None:
    answers = tmp_path / "answers.jsonl"
    rows = [{"talk": f"chat/{n}", "n": 1, "fault": 0.9, "good": 0.1} for n in range(3)]
    rows += [{"talk": "chat/bad0", "n": 1, "fault": 0.2}]
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows))
    chat = measured(talks, "--answers", answers)["chat"]
    assert (chat["turns"], chat["unanswered"], chat["read_by"], chat["auc"]) == (4, 1, "answers", 0)


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
        (talk("a", "b", GOOD, votes(1, 0, 0), a=0.5, b=2.5, c=6.0), ("--refit",), "of several people; name more"),
        ("\n", (), "holds no talks"),
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


def judge(votes: Votes, group: str) -> JudgedTurn:
    turn = TalkTurn(by="machine", text="Yes.", votes=votes)
    return JudgedTurn(talk_id=group, group=group, number=1, turn=turn, exchange=Exchange(before="", said="Yes."))


def reading(scores: list[float], verdicts: list[Votes]) -> CorpusReading:
    turns = tuple(judge(votes, group=str(n)) for n, votes in enumerate(verdicts))
    values = np.array(scores)
    return CorpusReading(
        name="c", talks=len(turns), by="words", turns=turns, with_reaction=values, at_once=1 - values, length=values
    )


def test_scores_of_known_answers() -> None:
    every = [Votes(breakdown=20), Votes(no_breakdown=20), Votes(no_breakdown=20), Votes(breakdown=20)]
    found = score_corpus(reading([1.0, 0.0, 0.0, 1.0], every))
    assert (found["auc"], found["average_precision"], found["auc_at_once"]) == (1, 1, 0)
    assert found["annotators"]["auc_of_half"] == 1


def test_annotators_who_vote_by_chance_tell_nothing_of_each_other() -> None:
    rng = np.random.default_rng(1)
    ones = rng.binomial(5, 0.5, 2000)
    verdicts = [Votes(no_breakdown=5 - int(n), breakdown=int(n)) for n in ones]
    found = score_corpus(reading(rng.random(2000).tolist(), verdicts))
    assert found["annotators"]["auc_of_half"] == pytest.approx(0.5, abs=0.03)
    low, high = found["auc_interval"]
    assert low < 0.5 < high
