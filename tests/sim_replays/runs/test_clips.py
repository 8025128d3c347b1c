"""VideoNorms and HSRI from a folder to what is asked: words, pictures and ids."""

from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest

from norm_core.records.json_codec import to_json
from norm_monitor.judge.deployment_context import DeploymentContext, PictureRules
from sim_replays.items.clip import list_shots, read_jpegs
from sim_replays.items.item_bag import make_frames
from sim_replays.items.run_config import RunConfig
from sim_replays.items.target import SuiteError
from sim_replays.runs.robot_config import make_answerer_config
from sim_replays.suites.suite import make_suite_items
from tests.sim_replays.requested_data import hsri_folder, videonorms_folder


def asking(suite: str, data: Path, setting: str, **given: Any) -> RunConfig:
    return RunConfig(suite=suite, data=str(data), setting=setting, **given)


def test_each_setting_asks_with_what_it_says_and_without_labels(tmp_path: Path) -> None:
    data = videonorms_folder(tmp_path / "data")
    given: dict[str, tuple[bool, int]] = {}
    for setting in ("transcript-given", "text", "blind"):
        item = make_suite_items(asking("videonorms", data, setting, bare=True)).episodes[0]
        given[setting] = "ANNA: Hello there.\nBEN: Hi." in item.queries[0].question, len(item.shots)
        assert "A smile." not in to_json(item)  # what annotators saw
    assert given == {"transcript-given": (True, 3), "text": (True, 0), "blind": (False, 0)}


def test_as_many_pictures_are_shown_as_in_the_paper_or_all_of_fewer(tmp_path: Path) -> None:
    data = videonorms_folder(tmp_path / "data", count=1)
    what = asking("videonorms", data, "transcript-given")
    assert [frame.stamp_ns for frame in make_frames(make_suite_items(what).episodes[0], what, 0)] == [
        0,
        10**9,
        2 * 10**9,
    ]
    hsri_data = hsri_folder(tmp_path / "hsri", with_pictures=True)
    for path in (hsri_data / "frames").iterdir():
        for index in range(2, 40):
            (path / f"{index:03}.jpg").symlink_to(path / "000.jpg")
    items = make_suite_items(asking("hsri", hsri_data, "transcript-given")).episodes
    assert {len(item.shots) for item in items} == {15}


def test_the_robot_decides_about_actions_alone_and_keeps_the_rules_of_pictures() -> None:
    public = PictureRules(deployment_context=DeploymentContext.PUBLIC, pictures_may_leave=True)
    with pytest.raises(SuiteError, match="hsri: no node of the robot decides such questions; ask a model alone"):
        make_answerer_config("far", RunConfig(suite="hsri", data="", setting="text"), public)
    acts = RunConfig(suite="egogapbench", data="", setting="blind")
    with pytest.raises(SuiteError, match="leave deployment_context out"):
        make_answerer_config("far", acts, public)
    assert make_answerer_config("far", acts, PictureRules(pictures_may_leave=True)).pictures_may_leave


def video(path: Path, seconds: int) -> None:
    """Ten pictures a second, each second lighter than the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for place in range(10 * seconds):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 40 * (1 + place // 10), np.uint8), format="bgr24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def test_pictures_come_from_a_video_as_well(tmp_path: Path) -> None:
    video(tmp_path / "videos/clip0.mp4", 3)
    found = list(read_jpegs(list_shots(tmp_path, "clip0", duration_s=None, max_count=3)))
    assert [shot.offset_ns for shot, _ in found] == [0, 10**9, 2 * 10**9]
    means = [np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)).mean() for _, data in found]
    assert [round(mean / 40) for mean in means] == [1, 2, 3]
    (tmp_path / "videos/broken.mp4").write_bytes((tmp_path / "videos/clip0.mp4").read_bytes()[:300])
    with pytest.raises(SuiteError, match="cannot be read as a video"):
        list(read_jpegs(list_shots(tmp_path, "broken", duration_s=3, max_count=1)))
    with pytest.raises(SuiteError, match=r"put frames/clip1/\*\.jpg or videos/clip1\.mp4 there"):
        list_shots(tmp_path, "clip1", duration_s=3, max_count=1)


def test_only_a_split_s_ids_are_asked(tmp_path: Path) -> None:
    data = hsri_folder(tmp_path / "data")
    (tmp_path / "split.json").write_text('["s0", "s3"]')
    made = make_suite_items(asking("hsri", data, "text", only=str(tmp_path / "split.json")))
    assert {one.id.partition("#")[0] for one in made.episodes} == {"s0", "s3"}
    assert {target.id.partition("#")[0] for target in made.targets} == {"s0", "s3"}
    (tmp_path / "split.json").write_text("s0\ns99\n")
    with pytest.raises(SuiteError, match=r"names ids that are not in .*: s99"):
        make_suite_items(asking("hsri", data, "text", only=str(tmp_path / "split.json")))
