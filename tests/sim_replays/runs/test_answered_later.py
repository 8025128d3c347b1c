"""Suites that a batch answers later, by the command line: rounds of requests, and the outcomes of a live run."""

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_ask_later import answer, pictures_of
from tests.norm_core.engines.fake_server import Answer, FakeServer
from tests.sim_replays.requested_data import hsri_folder, videonorms_folder
from tests.sim_replays.runs.test_server_runs import Bench, bench, server, text_of

__all__ = ["bench", "server"]  # fixtures
BARE = ("--bare", "--transport", "direct")
DATA: dict[str, Callable[[Path], Path]] = {
    "hsri": partial(hsri_folder, with_pictures=True),
    "videonorms": videonorms_folder,
}


def write_text(server: FakeServer) -> None:
    """Let the server write in the form of a schema, or an option's number, beside its scores of options."""
    scored = server.complete

    def complete(body: Answer) -> tuple[int, Answer]:
        if body.get("logprobs"):
            return scored(body)
        form = body.get("response_format")
        names = form["json_schema"]["schema"]["properties"] if form else ()
        text = json.dumps(dict.fromkeys(names, "It smiles.")) if form else f"[{1 + len(text_of(body)) % 3}]"
        return 200, answer("", text)["response"]["body"]

    server.complete = complete  # type: ignore[method-assign]


def send(bench: Bench, *options: object, suite: str = "egonormia") -> int:
    """Write and send rounds of requests until a round needs none. Returns their number."""
    for rounds in range(9):
        result = bench(*options, "--ask-later", bench.folder / "batch", out="later", suite=suite)
        assert result.returncode == 0, result.stderr
        if "nothing to ask" in result.stderr:
            return rounds
        sent = bench.verb("send", bench.folder / "batch", "fake", group="models")
        assert sent.returncode == 0, sent.stderr
    raise AssertionError("the rounds do not end")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("suite", "rounds", "options"),
    [("hsri", 1, ("--pictures-may-leave",)), ("videonorms", 2, ()), ("egonormia", 3, ()), ("egonormia", 2, BARE)],
)
def test_a_run_that_is_answered_later_equals_one_that_asks_now(
    bench: Bench, server: FakeServer, suite: str, rounds: int, options: tuple[str, ...]
) -> None:
    write_text(server)
    if suite in DATA:
        bench.data = DATA[suite](bench.folder / "data")
    live = bench(*options, out="live", suite=suite)
    asked_now = len(server.bodies)
    assert send(bench, *options, suite=suite) == rounds
    assert len(server.bodies) == 2 * asked_now
    later = bench(*options, "--answers", bench.folder / "batch", out="later", suite=suite)
    assert (len(server.bodies), later.returncode) == (2 * asked_now, live.returncode), later.stderr
    assert any(map(pictures_of, lines(bench.folder / "batch/requests-0001.jsonl"))) is (suite == "hsri")
    answers = lines(bench.folder / "live/answers.jsonl")
    assert lines(bench.folder / "later/answers.jsonl") == answers
    now, then = (json.loads((bench.folder / out / "score.json").read_text()) for out in ("live", "later"))
    note = f"answered later, by a batch; it holds no answer to 0 of {len(answers)} questions"
    assert sorted(then.pop("notes")) == sorted([*now.pop("notes"), note])
    assert then == now


def test_what_has_no_answer_is_an_outcome_and_what_was_not_asked_stays_open(bench: Bench, server: FakeServer) -> None:
    write_text(server)
    batch, options = bench.folder / "batch", (*BARE, "--limit", 3)
    bench(*options, "--ask-later", batch, out="later")
    bench.verb("send", batch, "fake", group="models")
    early = bench(*options, "--answers", batch, out="later")
    assert (early.returncode, (bench.folder / "later/raw.jsonl").exists()) == (1, False)
    assert "does not hold all requests of 9 questions; write them with --ask-later" in " ".join(early.stderr.split())
    send(bench, *options)
    missing, late, cut = (line["custom_id"] for line in lines(batch / "requests-0001.jsonl")[::2])  # of each action
    whole = (batch / "answers.jsonl").read_text()
    answers = {line["custom_id"]: line for line in lines(batch / "answers.jsonl")}
    del answers[missing]
    answers[late] = {"custom_id": late, "response": None, "error": {"code": "batch_expired"}}
    answers[cut] = answer(cut, "Hm, I", finish_reason="length")
    (batch / "answers.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in answers.values()) + '{"custom_id"')
    result = bench(*options, "--answers", batch, out="later")
    assert "1 line cannot be read" in result.stderr
    failures = Counter(failed=1, timed_out=1, unparsed=1)
    assert bench.outcomes("later") == {"action": failures, "justification": failures, "sensible": {"answered": 3}}
    assert "holds no answer to 2 of 9 questions" in " ".join(result.stdout.split())
    (batch / "answers.jsonl").write_text(whole)
    bench(*options, "--answers", batch, "--retry-failed", out="later")
    assert bench.outcomes("later")["justification"] == {"answered": 2, "unparsed": 1}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--ask-later", "new", "--answers", "new"), "exclude each other"),
        (("--ask-later", "new", "--model", "encoder"), "name a model behind a server"),
        (("--ask-later", "new", "--transport", "dds"), "--transport dds"),
        (("--answers", "new", "--max-tokens", "1"), "models send has --max-cost"),
        (("--answers", "new"), "holds no requests"),
    ],
)
def test_what_no_batch_can_do_is_refused(bench: Bench, options: tuple[str, ...], problem: str) -> None:
    result = bench(*(bench.folder / option if option == "new" else option for option in options))
    assert (result.returncode, problem in " ".join(result.stderr.split())) == (2, True), result.stderr
    assert {path.name for path in bench.folder.iterdir()} <= {"models", "state"}


def test_no_picture_is_written_where_nobody_said_that_it_may_leave(bench: Bench) -> None:
    bench.data = DATA["hsri"](bench.folder / "data")
    result = bench("--ask-later", bench.folder / "batch", suite="hsri")
    assert "requests without pictures, about" in result.stderr
    assert not any(map(pictures_of, lines(bench.folder / "batch/requests-0001.jsonl")))
