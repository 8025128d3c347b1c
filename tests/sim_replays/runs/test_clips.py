"""VideoNorms and HSRI from a folder to answers: what is in their bags, and what the judge makes of them."""

import json
import random
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest

from action_selector.selector import SelectorFiles
from norm_core.bags.reader import BagReader
from norm_core.records.episode import Episode, EpisodeEdge, Query
from norm_core.records.frame import Frame
from norm_core.records.json_codec import to_json
from norm_core.records.speech import Speaker, Utterance
from norm_monitor.judge.deployment_context import DeploymentContext, PictureRules
from sim_replays.items.clip import list_shots, read_jpegs
from sim_replays.items.item_bag import Record, read_records, write_item_bag
from sim_replays.items.run_config import RunConfig
from sim_replays.items.target import SuiteError
from sim_replays.runs.players import open_players
from sim_replays.runs.robot_config import JudgeAnswererConfig, make_answerer_config, make_judge_config
from sim_replays.suites import hsri, videonorms
from sim_replays.suites.suite import make_suite_items
from tests.sim_replays.requested_data import hsri_folder, norm, pictures, segment, videonorms_folder


def asking(suite: str, data: Path, setting: str, **given: Any) -> RunConfig:
    return RunConfig(suite=suite, data=str(data), setting=setting, **given)


def bag_of(what: RunConfig, path: Path) -> list[list[Record]]:
    write_item_bag(path, what, make_suite_items(what).episodes)
    episodes: list[list[Record]] = []
    for one in read_records(path):
        if isinstance(one, Episode) and one.state is EpisodeEdge.BEGIN:
            episodes.append([])
        episodes[-1].append(one)
    return episodes


def kinds(episode: list[Record], kind: type) -> list[Any]:
    return [one for one in episode if isinstance(one, kind)]


def test_items_are_answered_alike_shuffled_and_alone(tmp_path: Path) -> None:
    what = asking("hsri", hsri_folder(tmp_path / "data"), "text")
    items = make_suite_items(what).episodes
    chosen = [item for item in items if item.item.partition("#")[0] in {"s0", "s1", "s2"}]
    write_item_bag(tmp_path / "bag", what, chosen)
    [player] = open_players(JudgeAnswererConfig(), "direct", hosts=1, seed=0)
    together = {told.answer.query_id: told.answer for told in player.play(tmp_path / "bag")}
    for item in random.Random(1).sample(chosen, 4):
        write_item_bag(tmp_path / item.id, what, [item])
        for alone in player.play(tmp_path / item.id):
            same = together[alone.answer.query_id]
            assert (alone.answer.chosen, alone.answer.probabilities) == (same.chosen, same.probabilities)


@pytest.mark.parametrize("suite", ["videonorms", "hsri"])
def test_no_label_is_in_the_bag(tmp_path: Path, suite: str) -> None:
    folder = videonorms_folder if suite == "videonorms" else hsri_folder
    setting = "text"
    what = asking(suite, folder(tmp_path / "data"), setting)
    write_item_bag(tmp_path / "bag", what, make_suite_items(what).episodes)
    with BagReader(tmp_path / "bag") as reader:
        data = [message.data for message in reader.messages()]
    if suite == "videonorms":
        assert not any(b"A smile." in one for one in data)  # what annotators saw
        labels = [one for one in data if b"violation" in one]
        assert all(b"adherence" in one for one in labels)  # as an option beside the other alone
    else:
        rationales = [one for one in data if b"It is wrong for reason" in one]
        assert all(one.count(b"It is wrong for reason") == 5 for one in rationales)


def test_the_other_party_s_words_leave_the_episode(tmp_path: Path) -> None:
    what = asking("hsri", hsri_folder(tmp_path / "data"), "text")
    seen = set()
    for episode in bag_of(what, tmp_path / "bag"):
        queries, said = kinds(episode, Query), kinds(episode, Utterance)
        speakers = {one.speaker for one in said}
        for query in queries:
            seen.add(query.task)
            wanted = {"pre": {Speaker.ROBOT}, "post": {Speaker.USER}}.get(query.task, {Speaker.ROBOT, Speaker.USER})
            assert speakers == wanted
            assert query.question in (("error", "competence") if query.task in {"attributes", "multi"} else ("",))
    assert seen == set(hsri.TASKS)


def test_each_setting_gives_what_it_says(tmp_path: Path) -> None:
    data = videonorms_folder(tmp_path / "data")
    given: dict[str, tuple[int, int]] = {}
    for setting in ("transcript-given", "text", "blind"):
        episode = bag_of(asking("videonorms", data, setting), tmp_path / setting)[0]
        given[setting] = len(kinds(episode, Frame)), len(kinds(episode, Utterance))
    assert given == {"transcript-given": (3, 2), "text": (0, 2), "blind": (0, 0)}
    episode = bag_of(asking("videonorms", data, "text"), tmp_path / "again")[0]
    assert [(one.speaker_id, one.text) for one in kinds(episode, Utterance)] == [
        ("ANNA", "Hello there."),
        ("BEN", "Hi."),
    ]


def test_a_model_alone_is_asked_with_what_the_setting_says_and_without_labels(tmp_path: Path) -> None:
    data = videonorms_folder(tmp_path / "data")
    given: dict[str, tuple[bool, int]] = {}
    for setting in ("transcript-given", "text", "blind"):
        item = make_suite_items(asking("videonorms", data, setting, bare=True, sampling="paper")).episodes[0]
        given[setting] = "ANNA: Hello there.\nBEN: Hi." in item.queries[0].question, len(item.shots)
        assert "A smile." not in to_json(item)  # what annotators saw
    assert given == {"transcript-given": (True, 3), "text": (True, 0), "blind": (False, 0)}


def test_hsri_shows_as_many_pictures_as_its_paper(tmp_path: Path) -> None:
    data = hsri_folder(tmp_path / "data", with_pictures=True)
    for path in (data / "frames").iterdir():
        for index in range(2, 40):
            (path / f"{index:03}.jpg").symlink_to(path / "000.jpg")
    items = make_suite_items(asking("hsri", data, "transcript-given", sampling="paper")).episodes
    assert {len(item.shots) for item in items} == {15}


@pytest.mark.parametrize(("sampling", "count"), [("robot", 3), ("paper", 32)])
def test_sampling_is_the_robot_s_or_the_paper_s(tmp_path: Path, sampling: str, count: int) -> None:
    data = videonorms_folder(tmp_path / "data", count=1)
    for path in (data / "frames/clip0").iterdir():
        path.unlink()
    (data / "frames/clip0").rmdir()
    pictures(data, "clip0", 24)  # 8 a second; the paper's 32 are then as many as there are
    (data / videonorms.FILE).write_text(json.dumps(norm(0, duration_s=3)))
    [episode] = bag_of(asking("videonorms", data, "transcript-given", sampling=sampling), tmp_path / "bag")
    frames = kinds(episode, Frame)
    assert len(frames) == min(count, 24)
    assert (frames[0].stamp_ns - episode[0].stamp_ns, frames[-1].stamp_ns - episode[0].stamp_ns < 3e9) == (0, True)
    assert (
        make_judge_config("encoder", asking("videonorms", data, "blind", sampling=sampling)).suite.images
        == {
            "robot": 16,
            "paper": 32,
        }[sampling]
    )


def test_the_context_and_whose_pictures_may_leave_are_of_the_run() -> None:
    public = PictureRules(deployment_context=DeploymentContext.PUBLIC, pictures_may_leave=True)
    judge = make_answerer_config("far", RunConfig(suite="hsri", data="", setting="text"), public)
    assert isinstance(judge, JudgeAnswererConfig)
    assert judge.rules == public
    acts = RunConfig(suite="egogapbench", data="", setting="blind")
    with pytest.raises(SuiteError, match="leave deployment_context out"):
        make_answerer_config("far", acts, public)
    far = make_answerer_config("far", acts, PictureRules(pictures_may_leave=True))
    assert isinstance(far, SelectorFiles)
    assert far.pictures_may_leave


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
    found = list(read_jpegs(list_shots(tmp_path, "clip0", duration_s=None, max_count=0)))
    assert [shot.offset_ns for shot, _ in found] == [0, 10**9, 2 * 10**9]
    means = [np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)).mean() for _, data in found]
    assert [round(mean / 40) for mean in means] == [1, 2, 3]
    (tmp_path / "videos/broken.mp4").write_bytes((tmp_path / "videos/clip0.mp4").read_bytes()[:300])
    with pytest.raises(SuiteError, match="cannot be read as a video"):
        list(read_jpegs(list_shots(tmp_path, "broken", duration_s=3, max_count=0)))
    with pytest.raises(SuiteError, match=r"put frames/clip1/\*\.jpg or videos/clip1\.mp4 there"):
        list_shots(tmp_path, "clip1", duration_s=3, max_count=0)


def test_times_of_talk_are_kept_where_they_are_known(tmp_path: Path) -> None:
    talk = [
        {"speaker": "user", "text": "Question?", "start_s": 60.0, "end_s": 61.5},
        {"speaker": "agent", "text": "Answer.", "start_s": 62.0, "end_s": 64.0},
    ]
    data = hsri_folder(tmp_path / "data")
    lines = [segment(number, transcript=talk if number == 0 else segment(number)["transcript"]) for number in range(24)]
    (data / hsri.FILE).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    played = bag_of(asking("hsri", data, "text"), tmp_path / "bag")
    episode = next(one for one in played if kinds(one, Episode)[0].episode_id == "s0#0")
    begin_ns = episode[0].stamp_ns
    assert [(one.start_ns - begin_ns, one.end_ns - begin_ns) for one in kinds(episode, Utterance)] == [
        (0, 1_500_000_000),
        (2_000_000_000, 4_000_000_000),
    ]
    assert min(one.stamp_ns for one in kinds(episode, Query)) > begin_ns + 4_000_000_000
