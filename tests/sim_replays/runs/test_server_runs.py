"""Runs against a server that fails, refuses, hangs, limits and answers in text, by the command line."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from norm_core.runtime.json_lines import RunError
from sim_replays.runs.results.run_folder import begin, open_run
from sim_replays.suites import videonorms
from tests.command_line import tactful
from tests.norm_core.engines.fake_server import Answer, FakeServer, answering, error, serving, stalling
from tests.patience import PATIENCE_S
from tests.sim_replays.requested_data import norm, videonorms_folder

ITEMS = 2


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving() as server:
        server.letters = "ABCDE"
        yield server


class Bench:
    """`bench` of the command line with a model behind the server, a cache of its own, and a run's folder."""

    def __init__(self, server: FakeServer, folder: Path, data: Path) -> None:
        self.server, self.folder, self.data = server, folder, data
        (folder / "models").mkdir()
        self.describe()

    def describe(self, name: str = "fake", **settings: Any) -> None:
        manifest = {
            "name": name, "task": "vision-language", "engine": "openai", "quantization": "none", "licence": "none",
            "source": {"url": self.server.url}, "prices": {"prompt": 1000, "completion": 0},
            "settings": {"tries": 1, **settings},
        }  # fmt: skip
        (self.folder / f"models/{name}.yaml").write_text(json.dumps(manifest))

    def __call__(self, *options: object, out: str = "run", suite: str = "egonormia") -> Any:
        setting = {"egonormia": "pipeline", "videonorms": "text", "hsri": "transcript-given"}[suite]
        command = ["run", suite, "--data", self.data, "--setting", setting, "--model", "fake"]
        return self.verb(*command, "--transport", "direct", "--limit", ITEMS, "--out", self.folder / out, *options)

    def verb(self, *command: object, group: str = "bench") -> Any:
        return tactful(
            group, *command, TACTFUL_MODELS=str(self.folder / "models"), TACTFUL_STATE=str(self.folder / "state")
        )

    def outcomes(self, out: str = "run") -> dict[str, Counter[str]]:
        lines = map(json.loads, (self.folder / out / "answers.jsonl").read_text().splitlines())
        counted: dict[str, Counter[str]] = {}
        for line in lines:
            counted.setdefault(line["task"], Counter())[line["outcome"]] += 1
        return counted

    def requests(self, out: str = "run") -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / out / "asked.jsonl").read_text().splitlines()]


@pytest.fixture
def bench(server: FakeServer, shared_data: Path, tmp_path: Path) -> Bench:
    return Bench(server, tmp_path, shared_data / "egonormia/ood_robot.json")


def text_of(body: Answer) -> str:
    content = body["messages"][0]["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def replying(server: FakeServer, reply: Callable[[str], str | None]) -> None:
    """Let the server answer in words, without log-probabilities; None: an error."""

    def complete(body: Answer) -> tuple[int, Answer]:
        said = reply(text_of(body))
        if said is None:
            return error(500, "out of memory")
        usage = {"prompt_tokens": 100, "completion_tokens": 1}
        return 200, {"choices": [{"message": {"content": said}}], "usage": usage}

    server.complete = complete  # type: ignore[method-assign]


def test_a_failed_justification_is_failed_and_asked_again(bench: Bench, server: FakeServer) -> None:
    whole = FakeServer.complete

    def fails(body: Answer) -> tuple[int, Answer]:
        return error(500, "out of memory") if "best reason" in text_of(body) else whole(server, body)

    server.complete = fails  # type: ignore[method-assign]
    ran = bench()
    assert bench.outcomes() == {
        "action": {"answered": ITEMS}, "justification": {"failed": ITEMS}, "sensible": {"answered": ITEMS}
    }  # fmt: skip
    assert ran.returncode == 1
    assert f"justification: {ITEMS} failed" in ran.stdout
    assert "no question of the task justification was answered" in ran.stderr
    del server.complete
    before = len(server.bodies)
    assert bench().returncode == 1  # which asks nothing
    assert len(server.bodies) == before
    again = bench("--retry-failed")
    assert again.returncode == 0, again.stderr
    assert bench.outcomes()["justification"] == {"answered": ITEMS}
    assert all("--retry-failed" not in text for text in (again.stdout, again.stderr))


def test_failures_in_a_row_stop_a_run(bench: Bench, server: FakeServer) -> None:
    replying(server, lambda text: None)
    ran = bench("--max-failures", 4)
    assert ran.returncode == 1
    assert "4 questions failed in a row, the last with" in ran.stderr
    assert "--retry-failed" in ran.stderr
    assert sum(map(Counter.total, bench.outcomes().values())) == 4


def test_the_cache_asks_nothing_twice_and_a_query_only_what_it_needs(bench: Bench, server: FakeServer) -> None:
    first = bench()
    assert first.returncode == 0, first.stderr
    per_item = len(server.bodies) / ITEMS
    # 4 or 5 actions possible and sensible in both orders, 4 orders of the choice and 4 of the justification.
    assert per_item <= 26
    steps = Counter(request["step"] for request in bench.requests() if not request["cached"])
    assert set(steps) == {"possible", "choose", "justify", "sensible"}
    asked = len(server.bodies)
    second = bench(out="second")
    assert len(server.bodies) == asked
    assert all(request["cached"] for request in bench.requests("second"))
    for name in ("answers.jsonl", "score.json"):
        assert (bench.folder / "run" / name).read_bytes() == (bench.folder / "second" / name).read_bytes()
    assert "from the cache), 0 tokens" in second.stderr
    bench("--no-cache", out="third")
    assert len(server.bodies) == 2 * asked


def test_episodes_side_by_side_give_the_same(bench: Bench, server: FakeServer) -> None:
    bench("--no-cache")
    assert bench("--no-cache", "--concurrency", 3, out="beside").returncode == 0
    for name in ("answers.jsonl", "score.json"):
        assert (bench.folder / "run" / name).read_bytes() == (bench.folder / "beside" / name).read_bytes()
    here = tactful(
        *("bench", "run", "egonormia", "--data", bench.data, "--setting", "pipeline", "--model", "random"),
        *("--transport", "direct", "--concurrency", "3", "--out", bench.folder / "here"),
    )
    assert here.returncode == 2
    assert "answers one request at a time" in here.stderr
    assert "--transport direct" in bench("--transport", "dds", "--concurrency", 3, out="dds").stderr


def test_a_hanging_server_times_out(bench: Bench, server: FakeServer) -> None:
    server.faults += [stalling] * 2
    assert bench("--timeout-s", 0.1, "--max-failures", 2).returncode == 1
    assert bench.outcomes() == {"action": {"timed_out": 1}, "justification": {"timed_out": 1}}
    reasons = [request["reason"] for request in bench.requests()]
    assert any("--timeout-s" in reason for reason in reasons)


def test_what_runs_beside_a_run_that_stops_is_ended(bench: Bench, server: FakeServer) -> None:
    server.faults += [stalling, answering(500, error(500, "out of memory")[1])]
    ran = bench("--concurrency", 2, "--max-failures", 1)  # which would wait 600 s for the server that hangs
    assert (ran.returncode, server.released.is_set()) == (1, False)
    assert "1 question failed in a row" in ran.stderr


def test_refusals_in_words_are_refused(bench: Bench, server: FakeServer) -> None:
    replying(server, lambda text: "I'm sorry, but I can't help with that.")
    ran = bench()
    assert ran.returncode == 1
    assert all(set(counts) == {"refused"} for counts in bench.outcomes().values())
    replying(server, lambda text: "A")
    assert bench("--retry-failed").returncode == 0


def test_a_server_without_logprobs_is_read_by_its_words(bench: Bench, server: FakeServer) -> None:
    replying(server, lambda text: "The answer is (B)." if "\nC. " in text else "Let me think. Yes")
    ran = bench()
    assert ran.returncode == 0, ran.stderr
    assert "were read from text" in ran.stdout
    assert open_run(bench.folder / "run").name.endswith(" (all in text)")
    assert {request["reply"] for request in bench.requests()} == {"The answer is (B).", "Let me think. Yes"}
    bench.describe(answers="logprobs")
    strict = bench("--max-failures", 1, out="strict")
    assert "no log-probabilities" in strict.stderr
    bench.describe(answers="text", reasons_first=True)
    bench(out="reasons")
    assert "Reason step by step first" in text_of(server.bodies[-1])


def test_episodes_side_by_side_find_out_together_that_there_are_no_logprobs(bench: Bench, server: FakeServer) -> None:
    both = Barrier(2, timeout=PATIENCE_S)

    def complete(body: Answer) -> tuple[int, Answer]:
        if body.get("logprobs"):
            both.wait()
        usage = {"prompt_tokens": 100, "completion_tokens": 1}
        return 200, {"choices": [{"message": {"content": "A"}}], "usage": usage}

    server.complete = complete  # type: ignore[method-assign]
    assert bench("--concurrency", 2).returncode == 0
    assert all(set(counts) == {"answered"} for counts in bench.outcomes().values())


def test_requests_under_way_as_the_budget_ends_are_counted(bench: Bench, server: FakeServer) -> None:
    replying(server, lambda text: "A")
    assert bench("--concurrency", 2, "--max-tokens", 150).returncode == 1
    told = sum(one["prompt_tokens"] + one["completion_tokens"] for one in bench.requests())
    assert told == 101 * sum("choices" in server.complete(body)[1] for body in server.bodies)


def test_a_run_that_ended_before_its_first_answer_can_be_given_other_data(tmp_path: Path) -> None:
    begin(tmp_path / "run", {"data_sha256": "1"})
    begin(tmp_path / "run", {"data_sha256": "2"})
    (tmp_path / "run/raw.jsonl").touch()
    with pytest.raises(RunError, match="holds a run of another data_sha256"):
        begin(tmp_path / "run", {"data_sha256": "3"})


def test_tokens_are_counted_and_bounded(bench: Bench, server: FakeServer) -> None:
    replying(server, lambda text: "A")
    stopped = bench("--max-tokens", 2000)
    assert stopped.returncode == 1
    assert "--max-tokens is 2000" in stopped.stderr
    assert sum(map(Counter.total, bench.outcomes().values())) < 3 * ITEMS
    assert bench("--max-tokens", 2000).returncode == 1  # what an earlier session spent counts
    server.complete = lambda body: (200, {"choices": [{"message": {"content": "A"}}]})  # type: ignore[method-assign]
    silent = bench("--max-tokens", 2000, "--no-cache", out="silent")
    assert (silent.returncode, "the server counts no tokens" in silent.stderr) == (1, True)


def test_grades_are_read_from_words_and_silence_is_none(bench: Bench, server: FakeServer, tmp_path: Path) -> None:
    bench.data = videonorms_folder(tmp_path / "clips")
    (bench.data / videonorms.FILE).write_text("".join(f"{json.dumps(norm(number))}\n" for number in range(ITEMS)))
    given: list[str] = []

    def reply(text: str) -> str | None:
        if "Which grade" in text:
            return "Reasonable. The answer is E."
        if '"norm"' not in text:
            return "A"
        given.append(text)
        return '{"norm": "Greet people."}' if len(given) == 1 else "I'm sorry, but I cannot answer this."

    replying(server, reply)
    bench(suite="videonorms")
    bench.describe(answers="text", reasons_first=True)
    graded = bench.verb("score", bench.folder / "run", "--grade-with", "fake")
    assert graded.returncode == 0, graded.stderr
    score = json.loads((bench.folder / "run/score.json").read_text())
    assert (score["norm"], score["counts"]["norm"]) == (5, 1)
