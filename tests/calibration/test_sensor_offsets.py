"""Offsets that are known, by what is seen and heard; and what cannot be told, which is never guessed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from calibration.sensors.alignment import Alignment, Event, Method, align_events
from calibration.sensors.measurement import Measurement, Topics, measure
from norm_core.bags.reader import BagReader
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from tests.calibration.sensor_bags import (
    AUDIO,
    CAMERA,
    ROBOT,
    START_NS,
    Room,
    audio_messages,
    clap_bag,
    clap_sound,
    flash_bag,
    in_room,
    speech_bag,
)
from tests.foreign_bag import Maker, write

MAKERS: dict[Method, Callable[..., Path]] = {Method.CLAP: clap_bag, Method.FLASH: flash_bag, Method.SPEECH: speech_bag}
AIM_MS = 20
SHUFFLED = {Method.CLAP: "agree", Method.FLASH: "agree", Method.SPEECH: "not audible where its speech begins"}


def measured(path: Path, method: Method, stated_rate_hz: int = 16_000) -> Measurement:
    hearing = HearingConfig()
    hearing = hearing.model_copy(update={"stated": hearing.stated.__class__(rate_hz=stated_rate_hz)})
    with BagReader(path) as bag:
        there = {one.topic for one in bag.topics}
        robot = frozenset({ROBOT} & there)
        topics = Topics(
            microphone=AUDIO if AUDIO in there else "",
            camera=CAMERA if CAMERA in there else "",
            robot_speech=tuple(robot),
            robot_speech_in_bag=robot,
        )
        return measure(bag, topics, [method], hearing)


def found(path: Path, method: Method, **kwargs: Any) -> Alignment:
    return measured(path, method, **kwargs).offsets[method]


@pytest.mark.parametrize("offset_ms", [-300.0, 280.0])
@pytest.mark.parametrize("method", list(Method))
def test_a_known_offset_is_found(tmp_path: Path, method: Method, offset_ms: float) -> None:
    room = Room(offset_ms=offset_ms, snr_db=20, rt60_s=0.5)
    one = found(MAKERS[method](tmp_path / "bag", room), method)
    assert one.offset_ms is not None, one.why
    assert one.uncertainty_ms
    assert abs(one.offset_ms - offset_ms) <= min(AIM_MS, 1.5 * one.uncertainty_ms)


@pytest.mark.parametrize("fps", [10, 15])
@pytest.mark.parametrize("method", [Method.CLAP, Method.FLASH])
def test_slow_cameras_tell_it_with_more_uncertainty(tmp_path: Path, method: Method, fps: float) -> None:
    slow = found(MAKERS[method](tmp_path / "slow", Room(fps=fps, events=10)), method)
    fast = found(MAKERS[method](tmp_path / "fast", Room(fps=30, events=10)), method)
    assert slow.uncertainty_ms is not None, slow.why
    assert slow.offset_ms is not None
    assert abs(slow.offset_ms - 120) <= AIM_MS
    assert fast.uncertainty_ms is not None
    assert slow.uncertainty_ms >= fast.uncertainty_ms


def test_events_at_even_distances_fit_several_offsets() -> None:
    claps = [0.5 * number for number in range(20)]
    seen = [Event(from_s=at_s - 0.517, to_s=at_s - 0.483) for at_s in claps[2:]]
    one = align_events(claps, seen, "claps", "closing hands")
    assert one.offset_ms is None
    assert "repeat it at uneven ones" in one.why


def test_stamps_that_do_not_advance_are_named(tmp_path: Path) -> None:
    make = Maker({})
    jpeg = cv2.imencode(".jpg", np.zeros((48, 64, 3), np.uint8))[1].ravel()
    image = make("sensor_msgs/msg/CompressedImage", {"header": make.header(0), "format": "jpeg", "data": jpeg})
    sound = audio_messages(make, np.random.default_rng(0).normal(0, 0.01, 32_000).astype(np.float32))
    bag = write(tmp_path / "bag", make, [*sound, *((START_NS + n * 10**8, CAMERA, image) for n in range(20))])
    assert "its stamps do not advance; set header.stamp in the driver" in found(bag, Method.FLASH).why


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("method", list(Method))
def test_shuffled_events_tell_nothing(tmp_path: Path, method: Method, seed: int) -> None:
    one = found(MAKERS[method](tmp_path / "bag", Room(shuffled=True, seed=seed)), method)
    assert one.offset_ms is None
    assert SHUFFLED[method] in one.why


@pytest.mark.parametrize("method", list(Method))
@pytest.mark.parametrize("events", [1, 3])
def test_few_events_tell_nothing_and_say_how_many_more(tmp_path: Path, method: Method, events: int) -> None:
    one = found(MAKERS[method](tmp_path / "bag", Room(events=events)), method)
    assert one.offset_ms is None
    assert "4 needed" in one.why
    assert "more" in one.why


def test_a_noisy_room_hides_the_robot(tmp_path: Path) -> None:
    one = found(speech_bag(tmp_path / "bag", Room(snr_db=3, events=10)), Method.SPEECH)
    assert one.offset_ms is None
    assert "quiet room" in one.why, one.why


def test_a_robot_that_is_not_heard_has_no_offset(tmp_path: Path) -> None:
    one = found(speech_bag(tmp_path / "bag", Room(), heard=False), Method.SPEECH)
    assert one.offset_ms is None
    assert "the robot is not audible where its speech begins" in one.why


def test_the_echo_and_levels_of_the_microphone_are_told(tmp_path: Path) -> None:
    short = measured(speech_bag(tmp_path / "short", Room(rt60_s=0.2, snr_db=40)), Method.SPEECH)
    long = measured(speech_bag(tmp_path / "long", Room(rt60_s=1.0, snr_db=40)), Method.SPEECH)
    noisy = measured(speech_bag(tmp_path / "noisy", Room(rt60_s=0.2, snr_db=20)), Method.SPEECH)
    assert short.echo
    assert long.echo
    assert short.echo.rings_ms is not None
    assert long.echo.rings_ms is not None
    assert short.echo.rings_ms < long.echo.rings_ms
    assert short.levels
    assert noisy.levels
    assert noisy.levels.noise_floor_dbfs - short.levels.noise_floor_dbfs == pytest.approx(20, abs=3)


def test_a_clipped_microphone_is_advised(tmp_path: Path) -> None:
    room, times = Room(), Room().times(2.0)
    loud = np.clip(8 * clap_sound(room, times), -1, 1)
    path = write(tmp_path / "bag", make := Maker({}), audio_messages(make, loud))
    levels = measured(path, Method.CLAP).levels
    assert levels
    assert "lower the microphone's gain" in levels.advice


def test_missing_sensors_are_named(tmp_path: Path) -> None:
    make = Maker({})
    deaf = speech_bag(tmp_path / "speech", Room(events=5))
    assert "no camera" in found(deaf, Method.CLAP).why
    sound = write(tmp_path / "sound", make, audio_messages(make, in_room(Room(), np.zeros(80_000), 0.1)))
    assert "no topic of the robot's speech" in found(sound, Method.SPEECH).why


@pytest.mark.parametrize("jump_s", [0.5, -0.5, 40.0])
def test_a_clock_that_was_set_is_named(tmp_path: Path, jump_s: float) -> None:
    one = found(clap_bag(tmp_path / "bag", Room(), jump=(8.0, jump_s)), Method.CLAP)
    assert one.offset_ms is None
    assert "a clock was set meanwhile" in one.why


def test_damaged_pictures_are_left_out_or_refused(tmp_path: Path) -> None:
    some = found(flash_bag(tmp_path / "some", Room(), damaged=0.1), Method.FLASH)
    assert some.offset_ms is not None, some.why
    assert abs(some.offset_ms - 120) <= AIM_MS
    most = found(flash_bag(tmp_path / "most", Room(), damaged=0.8), Method.FLASH)
    assert "pictures are damaged" in most.why


def test_a_wrong_rate_is_named(tmp_path: Path) -> None:
    one = found(clap_bag(tmp_path / "bag", Room()), Method.CLAP, stated_rate_hz=44_100)
    assert "stamps do not fit its rate" in one.why
