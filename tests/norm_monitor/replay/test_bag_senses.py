"""The senses of a bag: frames made ahead are the camera's own, and what is not installed is told."""

from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from norm_core.bags.reader import BagError, BagMessage, BagReader
from norm_core.bags.writer import BagWriter
from norm_core.health.health_log import HealthLog
from norm_core.models import store
from norm_core.records.frame import Frame
from norm_core.records.presence import Presence
from norm_core.runtime.time import NS_PER_S
from norm_core.streams.watermarks import FRAMES, PRESENCE
from norm_monitor.encounters.demo_session import picture_message
from norm_monitor.encounters.library import HERE
from norm_monitor.replay import bag_driver
from norm_monitor.replay.bag_driver import BagSenses, PicturesAhead, words_topics_of
from norm_monitor.senses.camera.frame_keeper import FrameKeeper
from norm_monitor.senses.camera.picture import picture_of
from norm_monitor.senses.speech.audio_front_end import HearingConfig


def test_without_face_weights_frames_are_kept_and_the_remedy_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> Distribution:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(store, "distribution", absent)
    monkeypatch.setenv("TACTFUL_WEIGHTS", str(tmp_path))
    with BagReader(HERE / "shipped/garden_centre") as bag:
        senses = BagSenses(bag, HearingConfig(), recognizer=None)
        records = [record for _, record in senses.records()]
    assert FRAMES in senses.sources
    assert PRESENCE not in senses.sources
    assert any(isinstance(record, Frame) for record in records)
    assert not any(isinstance(record, Presence) for record in records)
    (reason,) = senses.health_log.reasons
    assert "run ./tactful models add blazeface-short-range" in reason


def test_peoples_words_come_from_sound_or_from_texts_alone() -> None:
    with (
        BagReader(HERE / "shipped/garden_centre") as bag,
        pytest.raises(BagError, match="from sound or from texts; leave one out"),
    ):
        words_topics_of(bag, ["/texts"], audio_topic="/audio")


START_NS, TOPIC = 1_767_225_600 * NS_PER_S, "/camera"


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """Five a second for 40 s, every seventh damaged, and two steps back in between."""
    chance = np.random.default_rng(3)
    with BagWriter(tmp_path / "bag") as bag:
        for at in range(200):
            stamp_ns = START_NS + at * NS_PER_S // 5 - (90 * NS_PER_S if at in {50, 51} else 0)
            jpeg = cv2.imencode(".jpg", chance.integers(0, 255, (24, 600, 3), np.uint8))[1].tobytes()
            data = jpeg[: len(jpeg) // 2] if at % 7 == 0 else jpeg
            bag.write_message(TOPIC, picture_message(data, stamp_ns), START_NS + at * NS_PER_S // 5)
    return tmp_path / "bag"


def camera() -> tuple[FrameKeeper, HealthLog]:
    health_log = HealthLog()
    return FrameKeeper(TOPIC, health_log), health_log


@pytest.mark.parametrize(("most_messages", "most_bytes"), [(0, 10**9), (3, 10**9), (256, 1), (256, 10**9)])
def test_the_frames_are_the_cameras_own(
    bag: Path, monkeypatch: pytest.MonkeyPatch, most_messages: int, most_bytes: int
) -> None:
    monkeypatch.setattr(bag_driver, "AHEAD_MESSAGES", most_messages)
    monkeypatch.setattr(bag_driver, "AHEAD_BYTES", most_bytes)
    alone, told = camera()
    with BagReader(bag) as reader:
        expected = [alone.keep(picture_of(reader.decode(one))) for one in reader.messages()]
    eye, health_log = camera()
    found: list[Frame | None] = []
    with BagReader(bag) as reader:
        pictures = PicturesAhead(reader, eye, TOPIC)
        stamps = []
        for one in pictures.messages(reader.messages()):
            stamps.append(one.stamp_ns)
            found.append(pictures.next_frame(one))
    assert found == expected
    assert sum(frame is not None for frame in found) > 35
    assert stamps == sorted(stamps)
    assert len(stamps) == 200
    assert health_log.counters == told.counters
    assert {counter.name for counter in told.counters} >= {"decode_failures", "stamps_jumped_back"}


def test_what_lies_before_damage_comes_first(bag: Path) -> None:
    eye, _ = camera()
    seen: list[Any] = []

    def cut_short(reader: BagReader) -> Iterator[BagMessage]:
        for at, one in enumerate(reader.messages()):
            if at == 120:
                raise BagError("is damaged")
            yield one

    with BagReader(bag) as reader:
        pictures = PicturesAhead(reader, eye, TOPIC)
        read = map(pictures.next_frame, pictures.messages(cut_short(reader)))
        with pytest.raises(BagError, match="is damaged"):
            seen.extend(read)
    assert len(seen) == 120
