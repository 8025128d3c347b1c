"""`python -m calibration.judge`: labels weigh in, and the monitor takes what is written."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from calibration.judge import app
from norm_core.records.flag import Polarity
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S
from norm_monitor.encounters.library import paths, read
from norm_monitor.judge.judge import JudgeCalibration
from sim_replays.monitor_bench.script_driver import make_script_records
from tests.norm_core.engines.fake_server import DEAD_URL, Answer, FakeServer, describe_model, serving

ENCOUNTERS, JUDGE = 8, "labels"
OPTIONS = {"a social error": Polarity.ERROR, "a social competence": Polarity.COMPETENCE, "ordinary conduct": None}
NEAR_NS = 2 * NS_PER_S  # from an event's onset to that of its turn or silence


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Encounters by two writers."""
    folder = tmp_path_factory.mktemp("labels")
    for number, path in enumerate(paths("development")[:ENCOUNTERS]):
        own = folder / f"writer_{number % 2}"
        own.mkdir(exist_ok=True)
        copy = own / f"site_{path.name}"  # as a team's own, on which no weights were fitted
        copy.write_text(path.read_text(encoding="utf-8").replace(f"id: {path.stem}", f"id: {copy.stem}", 1), "utf-8")
    return folder


@pytest.fixture
def server(labels: Path, own_models: Path) -> Iterator[FakeServer]:
    """Serve a model that knows the label of a turn by its words, and of a silence by the words before it."""
    polarity_of: dict[tuple[bool, str], Polarity] = {}
    for path in labels.rglob("*.yaml"):
        truth = make_script_records(read(path))[1]
        for turn in truth.turns:
            for is_silence, at_ns in ((True, turn.end_ns), (False, turn.start_ns)):
                near = [event for event in truth.events if abs(event.onset_ns - at_ns) < NEAR_NS]
                polarity_of.update(((is_silence, turn.text), event.polarity) for event in near)

    def complete(body: Answer) -> tuple[int, Answer]:
        content = body["messages"][0]["content"]
        before, _, marked = content.partition("\n>> ")
        is_silence = ": " not in marked.splitlines()[0]
        words = (before if is_silence else marked).splitlines()[-1 if is_silence else 0].partition(": ")[2]
        letters = dict(re.findall(r"^([A-Z])\. (.*)$", content, re.MULTILINE))
        right = polarity_of.get((is_silence, words))
        shares = {letter: 0.9 if OPTIONS[option] is right else 0.05 for letter, option in letters.items()}
        top = [{"token": letter, "logprob": math.log(share)} for letter, share in shares.items()]
        choice = {"message": {"content": "A"}, "logprobs": {"content": [top[0] | {"top_logprobs": top}]}}
        return 200, {"choices": [choice], "usage": {}}

    with serving() as server:
        server.complete = complete  # type: ignore[method-assign]
        describe_model(own_models, JUDGE, server.url)
        yield server


def run(labels: Path, folder: Path, *options: str) -> Any:
    command = ["--labels", str(labels), "--cache-folder", str(folder / "cache"), *options]
    return CliRunner().invoke(app, command)


def refusal(result: Any) -> str:
    """What `main` prints to the user, with an exit status of 2."""
    assert isinstance(result.exception, TactfulError), result.output
    return str(result.exception)


def test_a_model_that_knows_the_labels_adds_to_the_facts(labels: Path, server: FakeServer, tmp_path: Path) -> None:
    written = tmp_path / "judge.json"
    first = run(labels, tmp_path, "--model", JUDGE, "--write", str(written), "--json")
    assert first.exit_code == 0, first.output
    found = json.loads(first.stdout)
    questions = len(server.bodies)
    assert (found["asked"], found["unanswered"], found["units"]) == (questions, 0, questions)
    assert found["left_out"] == "writers"
    assert found["weight"] > 0.2
    assert found["added"]["log_loss_interval"][1] < 0
    assert found["readers"]["judge"]["average_precision"] > 0.9
    assert found["qualities"]["temperature"]["brier"] < found["qualities"]["control: base rate"]["brier"]
    assert len(found["qualities"]) == 3
    calibration = JudgeCalibration.load(written, JUDGE)
    assert (calibration.temperature, calibration.weight) == (found["temperature"], found["weight"])

    again = run(labels, tmp_path, "--model", JUDGE)
    assert again.exit_code == 0, again.output
    assert f"{questions} units asked, {questions} answered, 0 not" in again.output
    assert "control: base rate" in again.output
    assert len(server.bodies) == questions  # the answers were kept


@pytest.mark.usefixtures("server")
def test_a_small_sample_says_how_many_labels_are_missing(labels: Path, tmp_path: Path) -> None:
    result = run(labels, tmp_path, "--model", JUDGE, "--limit", "24")
    assert "12 labelled units have an answer, and 20 are needed: 8 are missing" in refusal(result)


def test_what_the_facts_were_fitted_on_calibrates_no_judge(tmp_path: Path, own_models: Path) -> None:
    describe_model(own_models, "far", DEAD_URL)
    shipped = paths("development")[0].parent
    result = run(shipped, tmp_path, "--model", "far", "--write", str(tmp_path / "judge.json"))
    assert "are shipped ones, on which the weights of the facts were fitted" in refusal(result)
