"""A model is timed as the judge that it would be, against the judge's own deadline."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from norm_core.engines.engine import Engine
from norm_core.engines.engine_factory import open_engine
from norm_core.models.manifest import Manifest
from norm_core.runtime.config import check_config
from norm_core.runtime.time import WallClock
from norm_monitor.judge.judge import JudgeConfig
from tactful_cli.models.measure import describe_judge, time_judge
from tests.norm_core.engines.fake_server import MAX_IMAGES, FakeServer, serving, stalling


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving() as server:
        yield server


def opened(server: FakeServer, **fields: object) -> Engine:
    plain = {"name": "served", "task": "vision-language", "engine": "openai", "quantization": "none", "licence": "MIT"}
    source = {"source": {"url": server.url}, "settings": {"tries": 1}}
    return open_engine(check_config(Manifest, plain | source | fields, "served"), WallClock(), beside=Path())


def pictures_of(server: FakeServer) -> list[int]:
    contents = [body["messages"][0]["content"] for body in server.bodies]
    return [sum(part["type"] == "image_url" for part in each) if isinstance(each, list) else 0 for each in contents]


def test_all_that_the_judge_may_ask_is_timed_with_its_pictures(server: FakeServer) -> None:
    server.letters = "ABC"
    engine = opened(server, max_images=MAX_IMAGES)
    timed = time_judge(engine)
    engine.close()
    assert timed["keeps_deadline"], timed
    assert timed["pictures"] == MAX_IMAGES
    # whether it was an error, the seven attributes (emotions by words alone), and the note
    assert sorted(pictures_of(server)) == [0] + [MAX_IMAGES] * 8
    assert describe_judge(timed).startswith("as judge: a unit with 2 pictures takes ")
    assert describe_judge(timed).endswith("s more; both keep judge.deadline_s, 10 s")


def test_a_model_that_is_too_slow_is_told_with_what_to_change(server: FakeServer) -> None:
    server.faults.append(stalling)
    engine = opened(server, max_images=0)
    timed = time_judge(engine, JudgeConfig(deadline_s=0.2))
    engine.close()
    assert not timed["keeps_deadline"]
    assert len(server.bodies) == 1
    assert "lower judge.images, or raise judge.deadline_s" in describe_judge(timed)


def test_a_model_that_refuses_the_pictures_says_so(server: FakeServer) -> None:
    engine = opened(server)
    timed = time_judge(engine)
    engine.close()
    assert "as judge: not with 4 pictures" in describe_judge(timed)
    assert "does not take these pictures" in describe_judge(timed)
