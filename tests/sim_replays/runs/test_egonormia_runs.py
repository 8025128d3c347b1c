"""EgoNormia's input forms, its halves and its precedents."""

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from action_selector.retrieval import PrecedentIndex
from norm_core.engines.sentences.sentence_encoder import SentenceEncoder
from norm_core.records.frame import Frame
from norm_core.records.outcome import Outcome
from sim_replays.items.item_bag import build, episodes
from sim_replays.items.run_config import RunConfig
from sim_replays.items.target import SuiteError
from sim_replays.runs.execute import files_for, index_of, run
from sim_replays.runs.transport import Direct
from sim_replays.suites import egonormia
from sim_replays.suites.suite import items_of_suite
from tests.sim_replays.requested_data import pictures


@pytest.fixture
def data(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three items of the robot set, with seven pictures each."""
    monkeypatch.setenv("TACTFUL_STATE", str(tmp_path / "state"))
    entries = json.loads((shared_data / "egonormia/ood_robot.json").read_text())
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "items.json").write_text(json.dumps(dict(list(entries.items())[:3])))
    for name in list(entries)[:3]:
        pictures(folder, name, 7)
    return folder


def asking(data: Path, setting: str, **given: Any) -> RunConfig:
    return RunConfig(suite="egonormia", data=str(data), setting=setting, **given)


def frames(data: Path, form: str, path: Path) -> list[Frame]:
    what = asking(data, "video", frames=form)
    build(path, what, items_of_suite(what))
    return [one for one in next(iter(episodes(path))) if isinstance(one, Frame)]


def grey(frame: Frame, row: int = 0, column: int = 0) -> int:
    """How light a cell of 32 by 24 is, as the place of the picture in it."""
    picture = cv2.imdecode(np.frombuffer(frame.tile_jpeg, np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None
    return round((float(picture[row * 24 + 12, column * 32 + 16].mean()) - 20) / 10)


def test_frames_are_shown_one_by_one_or_as_a_grid(data: Path, tmp_path: Path) -> None:
    single = frames(data, "discrete", tmp_path / "a")
    assert [grey(frame) for frame in single] == list(range(7))
    [grid] = frames(data, "tiled", tmp_path / "b")
    assert (grid.tile_width_px, grid.tile_height_px) == (5 * 32, 2 * 24)
    assert [grey(grid, place // 5, place % 5) for place in range(7)] == list(range(7))
    assert grid.stamp_ns == single[-1].stamp_ns  # as new as the newest


def test_shuffled_frames_are_the_same_in_another_order(data: Path, tmp_path: Path) -> None:
    single, shuffled = frames(data, "discrete", tmp_path / "a"), frames(data, "discrete-shuffled", tmp_path / "b")
    shown = [grey(frame) for frame in shuffled]
    assert shown != list(range(7))
    assert sorted(shown) == list(range(7))
    assert [frame.stamp_ns for frame in shuffled] == [frame.stamp_ns for frame in single]
    [grid] = frames(data, "tiled-shuffled", tmp_path / "c")
    assert [grey(grid, place // 5, place % 5) for place in range(7)] == shown
    assert [grey(frame) for frame in frames(data, "discrete-shuffled", tmp_path / "d")] == shown


def test_halves_share_no_video_and_divide_each_activity(tmp_path: Path) -> None:
    entries = {
        f"video{number // 2}_{number}": {
            "behaviors": list("abcde"),
            "justifications": list("vwxyz"),
            "correct": number % 5,
            "sensibles": [],
            "activity": "cooking" if number < 24 else "sport",
        }
        for number in range(40)
    }
    (tmp_path / "items.json").write_text(json.dumps(entries))
    items, labels = egonormia.read(tmp_path)
    for seed in (0, 1):
        (known, known_labels), (asked, asked_labels) = egonormia.halves(items, labels, seed)
        assert not {item.source for item in known} & {item.source for item in asked}
        assert (len(known), len(asked)) == (20, 20)
        for half in (known_labels, asked_labels):
            assert sum(label.activity == "cooking" for label in half) == 12
    assert egonormia.halves(items, labels, 0)[0][0] != egonormia.halves(items, labels, 1)[0][0]
    with pytest.raises(SuiteError, match="two videos or more"):
        egonormia.halves(items[:2], labels[:2])


def test_precedents_are_of_the_half_that_is_not_asked(shared_data: Path, data: Path) -> None:
    robots = shared_data / "egonormia"
    asked = {one.id for one in items_of_suite(asking(robots, "pipeline", precedents="none")).asked}
    assert len(asked) == 6  # of eleven
    for name in ("best-5", "random-5"):
        files = files_for("encoder", asking(robots, "pipeline", precedents=name))
        index = PrecedentIndex.load(Path(files.precedents_index))  # type: ignore[union-attr]
        assert len(index.precedents) == 5
        assert not {one.source for one in index.precedents} & asked
    none = files_for("encoder", asking(robots, "pipeline", precedents="none"))
    assert (none.precedents, none.precedents_index) == (0, "")  # type: ignore[union-attr]


def test_random_precedents_have_nothing_to_do_with_the_scene(shared_data: Path) -> None:
    encoder = SentenceEncoder()
    found = egonormia.precedents(*egonormia.read(shared_data / "egonormia/ood_robot.json"))
    nearest, drawn = (index_of(found, encoder, at_random_by=seed) for seed in (None, 0))
    for one in found:
        assert nearest.query(one.scene, encoder, count=1)[0][0] == one
        given = drawn.query(one.scene, encoder, not_of=one.source)
        assert len(given) == 5
        assert one.source not in {precedent.source for precedent, _ in given}
        assert drawn.query(one.scene, encoder, count=1)[0][0] != one


def test_a_run_with_precedents_answers_all_and_says_what_it_left_out(
    shared_data: Path, data: Path, tmp_path: Path
) -> None:
    what = asking(shared_data / "egonormia", "pipeline", precedents="best-5")
    files = files_for("encoder", what)
    found, scored = run(tmp_path / "run", what, files, Direct(files), how="test", progress=lambda done, total: None)
    assert {told.answer.outcome for told in found.told.values()} == {Outcome.ANSWERED}
    assert scored.items == 6
    assert any("only the half of the items was asked" in note for note in scored.notes)
    with pytest.raises(SuiteError, match="egonormia alone"):
        files_for("encoder", RunConfig(suite="egogapbench", data="", setting="blind", precedents="best-5"))
