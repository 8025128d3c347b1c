"""Runs from bags: nothing of an answer in a bag, resumption, scores from raw answers, comparisons."""

import json
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from norm_core.bags.reader import BagReader
from norm_core.records.episode import Answer, Query
from norm_core.records.outcome import Outcome
from norm_core.runtime.json_lines import RunError
from sim_replays.items.item_bag import build, episodes
from sim_replays.items.run_config import RunConfig
from sim_replays.items.target import SuiteError, read_predictions
from sim_replays.runs.execute import run, selector_files
from sim_replays.runs.results import run_folder
from sim_replays.runs.results.run_folder import Run, compare, first_differing_question, open_run
from sim_replays.runs.transport import Direct, TimedAnswer, Transport, TransportError
from sim_replays.suites.egogapbench import EgoGapKind
from sim_replays.suites.suite import items_of_suite, suite_called

FILES = selector_files("encoder")


class FirstOption:
    """Answers the first place of every question; may break off after some."""

    def __init__(self, breaks_after: int = 10**9) -> None:
        self.asked: list[str] = []
        self._left = breaks_after

    def play(self, bag: Path, wanted: Collection[str]) -> Iterator[TimedAnswer]:
        for episode in episodes(bag):
            for one in episode:
                if isinstance(one, Query) and one.query_id in wanted:
                    if not self._left:
                        raise TransportError("broken off")
                    self._left -= 1
                    self.asked.append(one.query_id)
                    answer = Answer(
                        stamp_ns=one.stamp_ns,
                        query_id=one.query_id,
                        episode_id=one.episode_id,
                        task=one.task,
                        outcome=Outcome.ANSWERED,
                        chosen=(0,),
                    )
                    yield TimedAnswer(answer=answer, took_s=0.0)


def asking(data: Path, suite: str = "egogapbench", setting: str = "others-given", limit: int = 8) -> RunConfig:
    return RunConfig(suite=suite, data=str(data), setting=setting, limit=limit)


def ran(out: Path, what: RunConfig, transport: Transport) -> Run:
    return run(out, what, FILES, transport, how="test", progress=lambda done, total: None)[0]


@pytest.fixture
def gap(shared_data: Path) -> Path:
    return shared_data / "egogapbench"


@pytest.fixture
def robot_set(shared_data: Path) -> Path:
    return shared_data / "egonormia/ood_robot.json"


def test_published_items_with_repeated_options_are_named(gap: Path, tmp_path: Path) -> None:
    (tmp_path / "only.txt").write_text("24391:appr_1:mcq3\n")
    what = asking(gap).model_copy(update={"only": str(tmp_path / "only.txt")})
    _, scored = run(tmp_path / "run", what, FILES, FirstOption(), how="test", progress=lambda done, total: None)
    assert "1 question with an option that stands twice: 24391:appr_1:mcq3" in scored.notes


def test_no_label_is_in_the_bag(gap: Path, tmp_path: Path) -> None:
    found = ran(tmp_path / "run", asking(gap), FirstOption())
    with BagReader(tmp_path / "run/bag") as reader:
        messages = list(reader.messages())
    assert len(messages) == 24  # begin, query and end of eight items
    for message in messages:
        assert not any(kind.value.encode() in message.data for kind in EgoGapKind if kind is not EgoGapKind.CORRECT)
    assert len(found.key.targets) == 8


def test_another_run_is_not_gone_on_with(gap: Path, tmp_path: Path) -> None:
    ran(tmp_path / "run", asking(gap), FirstOption())
    with pytest.raises((RunError, SuiteError), match="other questions"):
        ran(tmp_path / "run", asking(gap, setting="blind"), FirstOption())
    (tmp_path / "else").mkdir()
    (tmp_path / "else/letter.txt").write_text("dear")
    with pytest.raises(RunError, match="holds other files"):
        ran(tmp_path / "else", asking(gap), FirstOption())


def test_a_bag_that_was_not_built_here_is_left_alone(gap: Path, tmp_path: Path) -> None:
    recording = tmp_path / "run/bag"
    ran(tmp_path / "built", asking(gap, limit=1), FirstOption())
    shutil.copytree(tmp_path / "built/bag", recording)
    before = {path: path.read_bytes() for path in recording.iterdir()}
    with pytest.raises((RunError, SuiteError), match="holds other files"):
        ran(tmp_path / "run", asking(gap, limit=1), FirstOption())
    what = asking(gap, limit=1)
    with pytest.raises(SuiteError, match="was not built here"):
        build(recording, what, items_of_suite(what))
    assert {path: path.read_bytes() for path in recording.iterdir()} == before
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match="is a file"):
        ran(tmp_path / "file", what, FirstOption())
    with pytest.raises(SuiteError, match="was not built here"):
        build(tmp_path / "file", what, items_of_suite(what))


def test_a_bag_whose_building_was_broken_off_is_made_anew(gap: Path, tmp_path: Path) -> None:
    what = asking(gap, limit=1)
    build(tmp_path / "bag", what, items_of_suite(what))
    (tmp_path / "bag.labels.json").unlink()
    (tmp_path / "bag.building").touch()
    build(tmp_path / "bag", what, items_of_suite(what))
    assert not (tmp_path / "bag.building").exists()
    assert len(list(episodes(tmp_path / "bag"))) == 1


def test_an_unfinished_run_is_shown_as_such(gap: Path, tmp_path: Path) -> None:
    with pytest.raises(TransportError):
        ran(tmp_path / "run", asking(gap), FirstOption(breaks_after=3))
    with (tmp_path / "run/raw.jsonl").open("a") as raw:
        raw.write('{"answer": {"query_')  # as a power cut leaves it
    found = open_run(tmp_path / "run")
    assert (found.left, found.name[-13:]) == (5, " (unfinished)")
    assert any("5 of 8 questions were never asked" in note for note in run_folder.finish(found).notes)
    whole = ran(tmp_path / "run", asking(gap), FirstOption())
    assert not whole.left
    assert "unfinished" not in whole.name


def test_answers_that_were_all_alike_to_the_model_are_told(gap: Path, tmp_path: Path) -> None:
    what = asking(gap, setting="blind")
    _, scored = run(tmp_path / "run", what, FILES, Direct(FILES), how="test", progress=lambda *_: None)
    assert any("8 of 8 answers are draws" in note for note in scored.notes)


def test_answers_are_in_the_order_of_the_dataset(robot_set: Path, tmp_path: Path) -> None:
    """What a run writes scores the same by way of a file of predictions."""
    found = ran(tmp_path / "run", asking(robot_set, "egonormia", "pipeline", 0), FirstOption())
    targets = suite_called("egonormia").read(robot_set, "")
    read = read_predictions(tmp_path / "run/answers.jsonl", targets)
    assert read.predictions == run_folder.predictions(found).predictions
    action = suite_called("egonormia").figures(targets, read.predictions)["action"].value
    assert action < 60  # unshuffled, the first place would be right in 82 %


def test_a_run_is_scored_again_from_its_folder_alone(gap: Path, tmp_path: Path) -> None:
    ran(tmp_path / "run", asking(gap), FirstOption())
    before = json.loads((tmp_path / "run/score.json").read_text())
    shutil.move(tmp_path / "run", tmp_path / "moved")
    run_folder.finish(open_run(tmp_path / "moved"))
    assert json.loads((tmp_path / "moved/score.json").read_text()) == before
    with pytest.raises(RunError, match="is no run's folder"):
        open_run(tmp_path)


@pytest.mark.parametrize("last", ['{"answer": {"text": "谢'.encode()[:-1], b"\n", b"\r\n"])
def test_a_cut_or_empty_last_line_is_no_answer(gap: Path, tmp_path: Path, last: bytes) -> None:
    found = ran(tmp_path / "run", asking(gap), FirstOption())
    with (found.folder / run_folder.RAW).open("ab") as raw:
        raw.write(last)
    assert open_run(found.folder).told == found.told


def test_a_line_that_is_no_text_is_named(gap: Path, tmp_path: Path) -> None:
    found = ran(tmp_path / "run", asking(gap), FirstOption())
    with (found.folder / run_folder.RAW).open("ab") as raw:
        raw.write(b"\xff\xfe\n")
    with pytest.raises(RunError, match=rf"line {len(found.told) + 1}: .*move the file away"):
        open_run(found.folder)


def test_the_first_difference_is_named(gap: Path, tmp_path: Path) -> None:
    one = ran(tmp_path / "one", asking(gap), FirstOption())
    two = ran(tmp_path / "two", asking(gap), Direct(FILES))
    assert first_differing_question(one, one) is None
    differing = first_differing_question(one, two)
    assert differing is not None
    assert differing["query_id"] == next(iter(one.key.orders))
    assert "probabilities" in differing["differs_in"]
    [row] = compare(one, two)
    assert row.difference == pytest.approx(row.second - row.first)
    assert row.only_second_right - row.only_first_right == round(row.difference * row.count / 100)


def test_an_item_counts_for_both_where_action_and_justification_are_right(robot_set: Path, tmp_path: Path) -> None:
    what = asking(robot_set, "egonormia", "pipeline", 0)
    one, two = ran(tmp_path / "one", what, FirstOption()), ran(tmp_path / "two", what, Direct(FILES))
    rows = {row.task: row for row in compare(one, two)}
    assert list(rows) == ["action", "justification", "sensible", "both"]
    for run_, value in ((one, rows["both"].first), (two, rows["both"].second)):
        assert value == pytest.approx(run_folder.finish(run_).figures["both"].value)
    assert all(-100 <= row.low < row.high <= 100 and row.low <= row.difference <= row.high for row in rows.values())
    assert {row.p for row in compare(one, one)} == {1.0}


def test_a_run_without_a_step_says_so(gap: Path, tmp_path: Path) -> None:
    files = selector_files("encoder", without=["veto", "permutation"])
    assert (files.veto_others, files.avoid_others, files.orders) == (False, True, 1)
    found, _ = run(tmp_path / "run", asking(gap), files, FirstOption(), how="test", progress=lambda done, total: None)
    assert found.name == "egogapbench others-given default encoder without veto without permutation first 8"
    with pytest.raises(SuiteError, match=r"no step 'vetoes'.*veto, avoidance"):
        selector_files("encoder", without=["vetoes"])


def test_settings_and_pictures_that_are_not_there(gap: Path, tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="the settings are blind, captions"):
        ran(tmp_path / "a", asking(gap, setting="other"), FirstOption())
    with pytest.raises(SuiteError, match="--pictures"):
        ran(tmp_path / "b", asking(gap, setting="images"), FirstOption())
