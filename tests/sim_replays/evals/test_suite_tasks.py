"""Suites as tasks of inspect_ai: a model alone, controls and the robot; figures that cannot mislead."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import tactful
from tests.shared_data import ABSENT, SHARED_DATA
from tests.sim_replays.evals.chat_server import MODEL, ChatServer, serve_replies
from tests.sim_replays.requested_data import hsri_folder, norm, videonorms_folder

inspect_ai = pytest.importorskip("inspect_ai")

ROBOT_SET, BUNDLES = SHARED_DATA / "egonormia/ood_robot.json", SHARED_DATA / "egogapbench"
needs_data = pytest.mark.skipif(not SHARED_DATA.is_dir(), reason=ABSENT)
REPLIES = {"[1, 4, 5]": "They fit.\n[1, 2]", '"answer"': '{"answer": "B"}', "": "I weighed it.\n2"}


def usual(prompt: str) -> str:
    return next(reply for sign, reply in REPLIES.items() if sign in prompt)


def run(task: str, folder: Path, solver: Any = None, model: ChatServer | None = None, **options: Any) -> Any:
    from inspect_ai._eval.registry import task_create
    from inspect_ai.model import get_model

    arguments = options.pop("task_args", {})
    asked = get_model(MODEL, base_url=model.url, api_key="none", memoize=False) if model else "none"
    [log] = inspect_ai.eval(
        task_create(task, **arguments), model=asked, solver=solver, log_dir=str(folder), display="none",
        score_display=False, **{"max_retries": 0, **options},
    )  # fmt: skip
    return log


def figures(log: Any) -> dict[str, float]:
    [scores] = log.results.scores
    return {name: metric.value for name, metric in scores.metrics.items()}


def answers(log: Any) -> list[dict[str, Any]]:
    return [answer for sample in log.samples for answer in sample.scores["answers"].metadata["answers"]]


def egonormia(**arguments: Any) -> dict[str, Any]:
    return {"data": str(ROBOT_SET), "setting": "pipeline", **arguments}


@needs_data
def test_a_model_alone_answers_and_its_log_is_read_by_inspect(tmp_path: Path) -> None:
    from inspect_ai.log import read_eval_log

    with serve_replies(usual) as chat:
        log = run("tactful/egonormia", tmp_path, model=chat, task_args=egonormia(), limit=3, epochs=2)
    assert log.status == "success"
    read = read_eval_log(log.location)
    assert read.eval.task == "tactful/egonormia"
    scores = figures(read)
    assert scores["questions"] == 18  # three of each sample and epoch
    assert scores["action_stderr_of_3_clusters"] > 0
    first = read.samples[0]
    assert first.metadata["asked"]["item"]["queries"][0]["query_id"].startswith(str(first.id))
    chosen = [answer["prediction"] for answer in answers(read)]
    assert {answer["outcome"] for answer in chosen} == {"answered"}
    # The offered second option is another place in the dataset's own order.
    order = first.metadata["asked"]["item"]["orders"]
    assert chosen[0]["chosen"] == [order[first.metadata["asked"]["item"]["queries"][0]["query_id"]][1]]
    justification = next(prompt for prompt in chat.prompts if "Justification options" in prompt)
    assert "{chosen" not in justification


@needs_data
@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        ({"content": '{"answer": "B"}', "finish_reason": "length"}, "unparsed"),
        ("I'd rule out A. I'd go with C.", "answered"),
        ('{"answer": "A"} {"answer": "B"}', "unparsed"),
        ("I'm sorry, but I can't help with that.", "refused"),
    ],
)
def test_a_reply_that_is_no_answer_is_never_one(reply: str | dict[str, Any], outcome: str, tmp_path: Path) -> None:
    task = {"data": str(BUNDLES), "setting": "blind"}
    with serve_replies(lambda _: reply) as chat:
        log = run("tactful/egogapbench", tmp_path, model=chat, task_args=task, limit=2)
    assert [answer["prediction"]["outcome"] for answer in answers(log)] == [outcome] * 2
    assert figures(log).get(outcome, 0.0) == float(outcome != "answered")
    assert all("max_tokens" not in body for body in chat.bodies)  # no longest reply without an option


@needs_data
def test_probabilities_are_refused_where_the_provider_gives_none(tmp_path: Path) -> None:
    from sim_replays.evals.logs import read_run
    from sim_replays.items.target import SuiteError

    task = {"data": str(BUNDLES), "setting": "blind", "answers": "logprobs"}
    with serve_replies(usual) as chat:
        log = run("tactful/egogapbench", tmp_path, model=chat, task_args=task, limit=1)
    assert figures(log)["failed"] == 1
    with pytest.raises(SuiteError, match=r"unfinished.*gives no log-probabilities"):
        read_run(log)


@needs_data
def test_an_answer_from_the_cache_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    task = {"data": str(BUNDLES), "setting": "blind"}
    with serve_replies(usual) as chat:
        logs = [run("tactful/egogapbench", tmp_path, model=chat, task_args=task, limit=2, cache=True) for _ in "12"]
    assert ["from_cache" in figures(log) for log in logs] == [False, True]
    assert "from the cache" in logs[1].samples[0].scores["answers"].explanation


@needs_data
def test_the_robot_and_its_controls_answer_the_same_samples(tmp_path: Path) -> None:
    from sim_replays.evals.logs import compare_runs, make_run_report, read_run
    from sim_replays.evals.robot import robot

    task = {"data": str(BUNDLES), "setting": "others-given"}
    runs = {
        name: run("tactful/egogapbench", tmp_path, robot(selector=name), task_args=task, limit=6)
        for name in ("steps", "random", "none")
    }
    store = runs["steps"].samples[0].store
    assert len(store["bag_sha256"]) == 64
    details = store["answers"][0]["details"]
    assert details["decision"]["candidates"]
    assert details["answer"]["provenance"]["config_sha256"]
    again = run("tactful/egogapbench", tmp_path, robot(hosts=2), task_args=task, limit=6)
    answered = [[answer["prediction"] for answer in answers(log)] for log in (runs["steps"], runs["none"], again)]
    assert answered[0] == answered[1] == answered[2]  # the encoder alone is the robot without a model
    ours, at_random = (read_run(runs[name]) for name in ("steps", "random"))
    _, scored = make_run_report(ours, at_random)
    [row] = compare_runs(at_random, ours)
    assert scored.headline
    assert scored.headline.difference.value == pytest.approx(row.difference)


@pytest.mark.parametrize("choose", ["random", "first", "longest", "options"])
@pytest.mark.parametrize(
    "suite",
    [pytest.param("egonormia", marks=needs_data), pytest.param("egogapbench", marks=needs_data), "videonorms", "hsri"],
)
def test_every_suite_has_controls_that_see_only_options(suite: str, choose: str, tmp_path: Path) -> None:
    from sim_replays.evals.controls import control

    folders: dict[str, Callable[[Path], Path]] = {"videonorms": videonorms_folder, "hsri": hsri_folder}
    published = {"egonormia": ROBOT_SET, "egogapbench": BUNDLES}
    data = published.get(suite) or folders[suite](tmp_path / "data")
    with serve_replies(lambda _: "A") as chat:
        task = {"data": str(data), "setting": "blind"}
        log = run(f"tactful/{suite}", tmp_path, control(choose=choose), chat, task_args=task, limit=2)
    assert log.status == "success"
    choices = [answer["prediction"] for answer in answers(log) if answer["prediction"]["task"] != "norm"]
    assert {choice["outcome"] for choice in choices} == {"answered"}
    assert bool(chat.prompts) is (choose == "options")
    assert not any("transcript" in prompt.casefold() for prompt in chat.prompts)


@needs_data
def test_the_first_and_longest_options_stand_beside_each_run(tmp_path: Path) -> None:
    from sim_replays.evals.controls import control
    from sim_replays.evals.logs import make_run_report, read_run

    for choose in ("first", "longest"):
        log = run("tactful/egonormia", tmp_path, control(choose=choose), task_args=egonormia(), epochs=2)
        _, scored = make_run_report(read_run(log))
        assert scored.controls[f"{choose} option"] == scored.figures


def test_a_norm_without_its_form_is_asked_again_hotter(tmp_path: Path) -> None:
    task = {"data": str(videonorms_folder(tmp_path / "data")), "setting": "text"}
    with serve_replies(lambda _: "It is hard to say.") as chat:
        log = run("tactful/videonorms", tmp_path, model=chat, task_args=task, limit=1)
    assert [body["temperature"] for body in chat.bodies] == pytest.approx([0.0, 0.2, 0.4] * 3)
    assert (figures(log)["unparsed"], figures(log)["asked_again"]) == (1.0, 1.0)


def test_a_grader_gives_its_final_verdict_and_the_best_reference_counts(tmp_path: Path) -> None:
    from inspect_ai.model import get_model

    data = tmp_path / "data"
    videonorms_folder(data)
    (data / "annotations.jsonl").write_text(json.dumps(norm(1, other_norms=["Greet people."])) + "\n")
    lines = "Adherence/Violation: Adherence\nVerbal Evidence: hello\nNonVerbal Evidence: a smile\nSpecific Norm: Greet."
    with serve_replies(lambda _: lines) as chat, serve_replies(verdict) as judge:
        grader = get_model(MODEL, base_url=judge.url, api_key="none", memoize=False)
        log = run("tactful/videonorms", tmp_path, model=chat, task_args={"data": str(data), "setting": "text"},
                  model_roles={"grader": grader})  # fmt: skip
    assert log.status == "success"
    assert [figures(log)[name] for name in ("norm", "verbal")] == [4.0, 2.0]
    assert "nonverbal" not in figures(log)  # its evidence has no reference


def verdict(prompt: str) -> str:
    if "Gold verbal" in prompt:
        return "1 point less, as 5 - 3 = 2.\nFinal Verdict: **2**"
    return f"Final Verdict: {4 if 'Greet people.' in prompt else 3}"


@needs_data
def test_a_coercing_model_reads_the_whole_reply(tmp_path: Path) -> None:
    from inspect_ai.model import get_model

    task = {"data": str(BUNDLES), "setting": "blind"}
    cut = {"content": "So", "finish_reason": "length"}
    replies: Iterator[str | dict[str, Any]] = iter(["Whoever stands here would wait.", cut])
    with serve_replies(lambda _: next(replies)) as chat, serve_replies(lambda prompt: "C") as reader:
        coercer = get_model(MODEL, base_url=reader.url, api_key="none", memoize=False)
        log = run("tactful/egogapbench", tmp_path, model=chat, task_args=task, limit=2, max_samples=1,
                  model_roles={"coercer": coercer})  # fmt: skip
    read, cut = (answer["prediction"] for answer in answers(log))
    assert (read["outcome"], read["chosen"], read["reading"]) == ("answered", [2], "read by a model")
    assert (cut["outcome"], len(reader.prompts)) == ("unparsed", 1)  # a cut reply is no answer to anybody
    assert "Whoever stands here would wait." in reader.prompts[0]
    assert figures(log)["read_by_a_model"] == 0.5


@needs_data
def test_another_model_behind_the_same_name_is_told_within_a_run_and_between_two(tmp_path: Path) -> None:
    task = {"data": str(BUNDLES), "setting": "blind"}
    logs = []
    with serve_replies(lambda _: '{"answer": "A"}') as chat:
        for names in (["stand-in-1", "stand-in-2"], ["stand-in-3"] * 2, ["stand-in-3"] * 2):
            chat.serves = iter(names).__next__
            log = run("tactful/egogapbench", tmp_path, model=chat, task_args=task, limit=2, max_samples=1)
            logs.append(log.location)
    changed = tactful("bench", "score", *logs[:2])
    assert "more than one model that answered for openai-api/local/stand-in: stand-in-1, stand-in-2" in changed.stdout
    assert "stand-in-1, stand-in-2 in the first run and stand-in-3 in the second" in changed.stdout
    paired = json.loads(tactful("bench", "score", logs[1], "--control", logs[0], "--json").stdout)
    assert any("stand-in-3 in the first run" in note for note in paired["notes"])
    assert "stand-in-3" not in tactful("bench", "score", *logs[1:]).stdout


SUITE = """
import json
from pathlib import Path
from sim_replays.suites.own import Figures, Question, make_suite
from scoring.figures import Figure

def read(path):
    for line in path.read_text().splitlines():
        yield Question(**json.loads(line))

def score(targets, predictions):
    return {"accuracy": Figure(value=VALUE, low=0.0, high=100.0, count=len(targets))}

SUITE = make_suite("mine", read, score=score)
"""


def own_suite(folder: Path, *questions: dict[str, Any], value: float = 50.0) -> dict[str, str]:
    folder.mkdir()
    (folder / "suite.py").write_text(SUITE.replace("VALUE", str(value)))
    (folder / "questions.jsonl").write_text("".join(f"{json.dumps(question)}\n" for question in questions))
    return {"suite": str(folder), "data": str(folder / "questions.jsonl")}


QUESTION = {"id": "1", "ask": "What next?", "options": ["wait for the cook", "leave the room now"], "right": 0}


@pytest.mark.ros
def test_an_own_suite_is_answered_alike_by_nodes_and_in_process(tmp_path: Path) -> None:
    from sim_replays.evals.robot import robot

    task = own_suite(tmp_path / "mine", QUESTION, {**QUESTION, "id": "2"})
    logs = [run("tactful/own", tmp_path, robot(transport=name), task_args=task) for name in ("direct", "dds")]
    in_process, by_nodes = ([answer["prediction"] for answer in answers(log)] for log in logs)
    assert in_process == by_nodes
    assert [answer["outcome"] for answer in by_nodes] == ["answered"] * 2


@pytest.mark.ros
@pytest.mark.parametrize(("suite", "folder"), [("videonorms", videonorms_folder), ("hsri", hsri_folder)])
def test_questions_about_talk_are_answered_alike_by_nodes_and_in_process(
    suite: str, folder: Callable[[Path], Path], tmp_path: Path
) -> None:
    from sim_replays.evals.robot import robot

    task = {"data": str(folder(tmp_path / "data")), "setting": "text"}
    logs = [
        run(f"tactful/{suite}", tmp_path, robot(transport=name), task_args=task, limit=2) for name in ("direct", "dds")
    ]
    in_process, by_nodes = ([answer["prediction"] for answer in answers(log)] for log in logs)
    assert in_process == by_nodes
    assert "answered" in {answer["outcome"] for answer in by_nodes}
    assert logs[0].samples[0].store["bag_sha256"] == logs[1].samples[0].store["bag_sha256"]


def test_an_own_suite_is_a_task_and_tells_of_leaks(tmp_path: Path) -> None:
    leaking = {**QUESTION, "id": "2", "scene": "It is best to wait for the cook."}
    with serve_replies(lambda _: "A") as chat:
        log = run("tactful/own", tmp_path, model=chat, task_args=own_suite(tmp_path / "mine", QUESTION, leaking))
    assert figures(log)["accuracy"] == 0.5
    assert log.eval.metadata["cautions"] == ["the right option stands in the prompt of 1 question: 2"]


@pytest.mark.parametrize(
    ("questions", "value", "message"),
    [([QUESTION, QUESTION], 50.0, "the id appears twice"), ([QUESTION], 130.0, "a share is at most 100 %")],
)
def test_data_and_scorers_that_would_mislead_are_refused(
    questions: list[dict[str, Any]], value: float, message: str, tmp_path: Path
) -> None:
    from inspect_ai._util.error import PrerequisiteError

    task = own_suite(tmp_path / "mine", *questions, value=value)
    with serve_replies(lambda _: "A") as chat:
        try:
            failure = run("tactful/own", tmp_path, model=chat, task_args=task).error.message
        except PrerequisiteError as error:  # at load
            failure = str(error)
    assert message in failure


@needs_data
def test_an_unfinished_run_or_another_variant_is_never_paired(tmp_path: Path) -> None:
    from sim_replays.evals.controls import control
    from sim_replays.evals.logs import compare_runs, read_run
    from sim_replays.items.target import SuiteError

    task = {"data": str(BUNDLES), "setting": "blind"}
    replies = iter(['{"answer": "A"}'] * 2)
    with serve_replies(lambda _: next(replies, {"content": 1})) as chat:
        log = run("tactful/egogapbench", tmp_path, model=chat, task_args=task, limit=4, fail_on_error=False,
                  max_samples=1, max_retries=0)  # fmt: skip
    assert figures(log)["failed"] == 0.5  # they stay in the figures
    with pytest.raises(SuiteError, match="unfinished"):
        read_run(log)
    first = read_run(run("tactful/egogapbench", tmp_path, control(choose="first"), task_args=task, limit=4))
    other = read_run(run("tactful/egogapbench", tmp_path, control(), task_args={**task, "style": "exclusion"}, limit=4))
    with pytest.raises(SuiteError, match="another variant"):
        compare_runs(first, other)


def test_runs_that_saw_other_pictures_are_never_paired(tmp_path: Path) -> None:
    from sim_replays.evals.controls import control
    from sim_replays.evals.logs import compare_runs, read_run
    from sim_replays.items.target import SuiteError

    data = videonorms_folder(tmp_path / "data")
    task = {"data": str(data), "setting": "transcript-given"}
    runs = []
    for picture in (b"", *(path.read_bytes() for path in (data / "frames/clip0").glob("000.jpg"))):
        (data / "frames/clip0/000.jpg").write_bytes(picture + b"more")
        runs.append(read_run(run("tactful/videonorms", tmp_path, control(), task_args=task)))
    with pytest.raises(SuiteError, match="asked other data, pictures or another variant"):
        compare_runs(*runs)


@needs_data
def test_a_log_that_another_scorer_scored_as_well_keeps_its_figures(tmp_path: Path) -> None:
    from inspect_ai import score
    from inspect_ai.scorer import exact

    from sim_replays.evals.controls import control
    from sim_replays.evals.logs import make_run_report, read_run

    log = run("tactful/egonormia", tmp_path, control(), task_args=egonormia(), limit=2)
    both = score(log, [exact()], action="append", display="none")
    both.samples[0].scores = dict(reversed(both.samples[0].scores.items()))
    assert make_run_report(read_run(both))[1].figures == make_run_report(read_run(log))[1].figures
