"""`tactful calibrate quantization` on bags, with models behind servers of their own: one knows the labels."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from typer.testing import CliRunner

from norm_core.bags.writer import BagWriter
from norm_core.records.presence import Presence, PresenceState
from norm_core.runtime.errors import TactfulError
from norm_core.runtime.time import NS_PER_S
from sim_replays.scenarios.truth import truth_path
from tactful_cli.main import app
from tests.acceptance.judged_encounters import JUDGE, label_server, write_script_bag
from tests.norm_core.engines.fake_server import DEAD_URL, FakeServer, answering, describe_model, serving

ENCOUNTERS = 6
COPY, OTHER, DEAD = "labels-int8", "other", "dead"


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bags with the labels beside them."""
    folder = tmp_path_factory.mktemp("bags")
    for number in range(ENCOUNTERS):
        write_script_bag(folder, number)
    return folder


@pytest.fixture
def other(bags: Path, tmp_path: Path) -> Iterator[FakeServer]:
    """Models: one that knows the labels, twice; one that answers by chance; one whose server is dead."""
    with label_server(tmp_path, sorted(bags.glob("*.truth.json"))), serving() as server:
        plain = yaml.safe_load((tmp_path / f"{JUDGE}.yaml").read_text(encoding="utf-8"))
        copy = plain | {"name": COPY, "quantization": "int8", "made_from": JUDGE, "settings": {"model": JUDGE}}
        (tmp_path / f"{COPY}.yaml").write_text(yaml.safe_dump(copy), encoding="utf-8")
        describe_model(tmp_path, OTHER, server.url)
        describe_model(tmp_path, DEAD, DEAD_URL)
        yield server


def run(bags: Path, *models: str, options: tuple[str, ...] = ()) -> Any:
    return CliRunner().invoke(app, ["calibrate", "quantization", str(bags), "--models", *models, *options])


def first_bag(bags: Path) -> Path:
    return next(path for path in sorted(bags.iterdir()) if path.is_dir())


def refusal(result: Any) -> str:
    assert isinstance(result.exception, TactfulError), result.output
    return str(result.exception)


@pytest.mark.usefixtures("other")
def test_a_model_that_answers_alike_meets_the_tolerance(bags: Path, tmp_path: Path) -> None:
    plot = tmp_path / "out.svg"
    result = run(bags, JUDGE, COPY, options=("--labels", str(bags), "--plot", str(plot), "--json"))
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["verdict"] == {"result": "met", "tolerance": 0.05, "units_missing": None}
    assert found["agreement"]["value"] == 1
    assert found["agreement"]["interval"][0] > 0.95
    assert (found["flips"], found["shift"]["most"]) == ([], 0)
    assert found["control"] == {"units": 20, "flips": 0, "largest_shift": 0}
    assert found["calibration"][0] == found["calibration"][1]
    assert found["calibration"][0]["accuracy"] > 0.95
    assert [one["peak_mb"] for one in found["memory"]] == [None, None]
    points = ElementTree.parse(plot).iter("{http://www.w3.org/2000/svg}circle")
    assert len(list(points)) == 3 * found["units"]


@pytest.mark.usefixtures("other")
def test_a_model_that_answers_by_chance_does_not(bags: Path) -> None:
    result = run(bags, JUDGE, OTHER, options=("--labels", str(bags)))
    assert result.exit_code == 1, result.output
    assert "not met: at most 5 % of answers may change, and the whole interval is above" in result.stdout
    assert f"    {JUDGE}: ordinary conduct (" in result.stdout
    assert f"    {OTHER}: a social " in result.stdout
    assert "prompt_family is not stated and none" in result.stderr


@pytest.mark.usefixtures("other")
def test_too_few_units_tell_how_many_more(bags: Path) -> None:
    result = run(first_bag(bags), JUDGE, COPY, options=("--limit", "10"))
    assert result.exit_code == 1, result.output
    assert "cannot tell: at most 5 % of answers may change" in result.stdout
    assert "63 more units are needed" in result.stdout


@pytest.mark.usefixtures("other")
def test_the_same_model_twice_is_a_control(bags: Path) -> None:
    result = run(first_bag(bags), JUDGE, JUDGE, options=("--control", "0", "--tolerance", "0.5", "--json"))
    assert result.exit_code == 0, result.output
    assert "this is a control" in result.stderr
    assert json.loads(result.stdout)["control"] is None


def test_what_is_no_answer_stands_apart_and_counts_as_lost(bags: Path, other: FakeServer) -> None:
    other.faults.extend(answering(200, not_a_number()) for _ in range(3))
    found = json.loads(run(first_bag(bags), OTHER, OTHER, options=("--json", "--control", "0")).stdout)
    lost = [sum(one.values()) for one in found["unanswered"]]
    assert sum(lost) >= 3  # after such a reply, the client asks a server nothing for a while
    assert found["answered_by_both"] == found["agreement"]["of"]
    assert found["changed"]["units"] == found["changed"]["of"] - found["answered_by_both"] > 0


def test_a_model_without_numbers_is_refused(bags: Path, other: FakeServer) -> None:
    other.faults.extend(answering(200, not_a_number()) for _ in range(50))
    assert f"{OTHER}: gave no answer to 8 units in a row" in refusal(run(first_bag(bags), JUDGE, OTHER))


def not_a_number() -> dict[str, Any]:
    """A completion with log-probabilities of NaN."""
    top = [{"token": letter, "logprob": float("nan")} for letter in "ABC"]
    message = {"role": "assistant", "content": "A"}
    choice = {"message": message, "finish_reason": "stop", "logprobs": {"content": [top[0] | {"top_logprobs": top}]}}
    return {"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}


@pytest.mark.usefixtures("other")
def test_bad_input_is_refused_with_a_remedy(bags: Path, tmp_path: Path) -> None:
    bag = first_bag(bags)
    assert f"{DEAD}: gave no answer to 8 units in a row" in refusal(run(bag, JUDGE, DEAD))
    assert "there is no model 'labels-int4'; did you mean labels-int8" in refusal(run(bag, JUDGE, "labels-int4"))
    assert truth_path(bag).name in refusal(run(bag, JUDGE, COPY, options=("--labels", str(tmp_path))))

    quiet = tmp_path / "quiet"
    with BagWriter(quiet) as writer:
        writer.write(
            "/tactful/presence",
            Presence(stamp_ns=NS_PER_S, source_topic="camera", state=PresenceState.ABSENT),
            NS_PER_S,
        )
    assert "no unit that a judge is asked about is in there" in refusal(run(quiet, JUDGE, COPY))

    unmarked = tmp_path / "unmarked"
    unmarked.mkdir()
    truth = json.loads(truth_path(bag).read_text(encoding="utf-8")) | {"events": []}
    truth_path(unmarked / bag.name).write_text(json.dumps(truth), encoding="utf-8")
    refused = refusal(run(bag, JUDGE, DEAD, options=("--labels", str(unmarked))))  # before anything is asked
    assert "are all ordinary, and calibration needs errors or competences" in refused
