"""What is kept of a camera's messages, and how bad ones are counted."""

import struct
from collections.abc import Iterable
from dataclasses import replace
from random import Random

import cv2
import numpy as np
import pytest

from norm_core.health.health_log import HealthLog
from norm_core.records.status import Health
from norm_core.runtime.time import NS_PER_S
from norm_monitor.senses.camera.faults import CameraFault
from norm_monitor.senses.camera.frame_keeper import FrameConfig, FrameKeeper
from norm_monitor.senses.camera.picture import Picture, PictureFormatError, decode
from tests.node_records import counted
from tests.norm_monitor.senses.camera_messages import PERIOD_NS, START_NS, compressed, raw, scene

HOUR_NS = 3600 * NS_PER_S


def camera(config: FrameConfig | None = None) -> tuple[FrameKeeper, HealthLog]:
    health_log = HealthLog()
    return FrameKeeper("/camera", health_log, config), health_log


def as_encoding(image: np.ndarray, encoding: str) -> np.ndarray:
    rgb = image[:, :, ::-1]
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    alpha = np.full((*grey.shape, 1), 255, np.uint8)
    return {
        "bgr8": image,
        "rgb8": rgb,
        "bgra8": np.concatenate([image, alpha], 2),
        "rgba8": np.concatenate([rgb, alpha], 2),
        "mono8": grey,
        "mono16": grey.astype("<u2") << 8,
    }[encoding]


@pytest.mark.parametrize("encoding", ["bgr8", "rgb8", "bgra8", "rgba8", "mono8", "mono16"])
def test_raw_encodings_give_their_colours(encoding: str) -> None:
    image = scene()
    pixels = decode(raw(START_NS, np.ascontiguousarray(as_encoding(image, encoding)), encoding))
    grey = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), cv2.COLOR_GRAY2BGR)
    assert np.array_equal(pixels, grey if encoding.startswith("mono") else image)


@pytest.mark.parametrize(("encoding", "order"), [("yuv422", (1, 0, 3, 2)), ("yuv422_yuy2", (0, 1, 2, 3))])
def test_yuv422_keeps_its_luminance(encoding: str, order: tuple[int, ...]) -> None:
    pairs = np.array([[(60, 128, 200, 128)] * 4] * 4, np.uint8)[:, :, list(order)]
    pixels = decode(replace(raw(START_NS, scene(8, 4), encoding), step_bytes=16, data=pairs.tobytes()))
    assert pixels[0, 1, 0] > pixels[0, 0, 0] + 100


@pytest.mark.parametrize("encoding", ["nv12", "nv21"])
def test_nv_of_grey_is_grey(encoding: str) -> None:
    data = np.full((6, 8), 128, np.uint8).tobytes()
    pixels = decode(replace(raw(START_NS, scene(8, 4), encoding), step_bytes=8, data=data))
    assert pixels.shape == (4, 8, 3)
    assert int(np.ptp(pixels)) <= 2


@pytest.mark.parametrize(("pattern", "first"), [("rggb", 2), ("bggr", 0)])
def test_bayer_red_and_blue_are_not_swapped(pattern: str, first: int) -> None:
    mosaic = np.zeros((16, 16), np.uint8)
    mosaic[::2, ::2] = 255  # only the pattern's first colour is lit
    pixels = decode(raw(START_NS, mosaic, f"bayer_{pattern}8"))[4:12, 4:12].reshape(-1, 3).mean(axis=0)
    assert int(np.argmax(pixels)) == first


def test_big_endian_mono16() -> None:
    image = np.full((4, 6), 0x8040, ">u2")
    picture = replace(raw(START_NS, image, "mono16"), big_endian=True)
    assert decode(picture)[0, 0].tolist() == [0x80] * 3


def test_row_padding_is_left_out() -> None:
    image = scene(10, 6)
    padded = np.concatenate([image.reshape(6, 30), np.full((6, 7), 99, np.uint8)], axis=1)
    picture = replace(raw(START_NS, image), step_bytes=37, data=padded.tobytes())
    assert np.array_equal(decode(picture), image)


@pytest.mark.parametrize(
    "stated", ["jpeg", "jpg", "rgb8; jpeg compressed bgr8", "", "png", "bgr8; png compressed bgr8"]
)
def test_compressed_formats(stated: str) -> None:
    picture = compressed(START_NS, scene(), "png" if "png" in stated else "jpeg", stated or "jpeg")
    pixels = decode(replace(picture, encoding=stated))
    assert np.abs(pixels[4:20, 4:28].astype(int) - (200, 40, 40)).max() < 20


def test_a_png_of_swapped_colours_is_swapped_back() -> None:
    picture = compressed(START_NS, scene()[:, :, ::-1], "png", "rgb8; png compressed rgb8")
    assert np.array_equal(decode(picture), scene())


def torn(start: int, count: int, by: bytes = b"") -> Picture:
    """A JPEG that keeps its markers and lost some bytes between them, as to a dropped packet."""
    noise = np.random.default_rng(0).integers(0, 255, (96, 128, 3), np.uint8)
    picture = compressed(START_NS, noise)
    return replace(picture, data=picture.data[:start] + by + picture.data[start + count :])


_JPEG = compressed(START_NS, scene()).data
_SIZE_AT = _JPEG.index(b"\xff\xc0") + 5
CLAIM = _JPEG[:_SIZE_AT] + struct.pack(">HH", 65_000, 65_000) + _JPEG[_SIZE_AT + 4 :]
JPEG, RAW = compressed(START_NS, scene()), raw(START_NS, scene())
NARROW = raw(START_NS, np.zeros((70_000, 1), np.uint8), "mono8")
BAD = {
    "torn": (torn(2000, 512), "DECODE_FAILED"),
    "overwritten": (torn(2000, 512, bytes(512)), "DECODE_FAILED"),
    "cut short": (replace(JPEG, data=JPEG.data[:300]), "DECODE_FAILED"),
    "no picture": (replace(JPEG, data=b"not a picture"), "DECODE_FAILED"),
    "claims 65,000 x 65,000 px": (replace(JPEG, data=CLAIM), "DECODE_FAILED"),
    "too narrow to be encoded": (NARROW, "DECODE_FAILED"),
    "empty": (replace(JPEG, data=b""), "ZERO_SIZE"),
    "zero size": (replace(RAW, width_px=0, height_px=0), "ZERO_SIZE"),
    "too few bytes": (replace(RAW, data=b"123"), "DECODE_FAILED"),
    "small step": (replace(RAW, step_bytes=5), "DECODE_FAILED"),
    "depth": (replace(RAW, encoding="32FC1"), "UNKNOWN_ENCODING"),
    "video": (replace(JPEG, encoding="h264"), "UNKNOWN_ENCODING"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_pictures_are_counted_and_the_next_is_kept(name: str) -> None:
    picture, fault = BAD[name]
    eye, health_log = camera()
    assert eye.keep(picture) is None
    assert counted(health_log) == {CameraFault[fault]: 1}
    good = eye.keep(compressed(START_NS + PERIOD_NS, scene()))
    assert good is not None
    assert good.stamp_ns == START_NS + PERIOD_NS
    with pytest.raises(PictureFormatError):
        decode(picture)


def test_a_whole_jpeg_with_a_stray_byte_before_its_end_is_kept() -> None:
    whole = torn(0, 0)
    stray = replace(whole, data=whole.data[:-2] + b"\x01" + whole.data[-2:])
    assert np.array_equal(decode(stray), decode(whole))


def test_the_first_frame_of_each_second_is_kept() -> None:
    eye, health_log = camera()
    jpeg = compressed(START_NS, scene())
    kept_stamps = [eye.keep(replace(jpeg, stamp_ns=START_NS + 500_000_000 + n * PERIOD_NS)) for n in range(90)]
    stamps = [frame.stamp_ns for frame in kept_stamps if frame]
    firsts = [START_NS + 500_000_000 + n * PERIOD_NS for n in (0, 16, 46, 76)]
    assert stamps == firsts
    assert counted(health_log) == {}


def test_irregular_stamps_are_counted_by_their_fault() -> None:
    (eye, health_log), jpeg = camera(), compressed(START_NS, scene())
    steps = [0, 1, 2, 3, 4, 4, 3, 10]
    for step in steps:
        eye.keep(replace(jpeg, stamp_ns=START_NS + step * PERIOD_NS))
    eye.keep(replace(jpeg, stamp_ns=START_NS + HOUR_NS))
    back = eye.keep(replace(jpeg, stamp_ns=START_NS + NS_PER_S))
    assert counted(health_log) == {
        CameraFault.DUPLICATE: 1,
        CameraFault.REORDERED: 1,
        CameraFault.STAMP_GAP: 1,
        CameraFault.JUMPED_FORWARD: 1,
        CameraFault.JUMPED_BACK: 1,
    }
    assert back is not None


def stamped(steps: list[float]) -> tuple[int, HealthLog]:
    """Show a camera pictures at these multiples of its period; return the count of frames."""
    (eye, health_log), jpeg = camera(), compressed(START_NS, scene())
    frames = [eye.keep(replace(jpeg, stamp_ns=START_NS + round(step * PERIOD_NS))) for step in steps]
    return sum(frame is not None for frame in frames), health_log


def jittered(steps: Iterable[int], share: float) -> list[float]:
    chance = Random(7)
    return [step + chance.uniform(-share, share) for step in steps]


@pytest.mark.parametrize("lost", [0, 12])
def test_lost_frames_are_counted_and_jitter_is_not(lost: int) -> None:
    _, health_log = stamped(jittered((step for step in range(600) if not lost or step % 50 != 40), 0.15))
    assert counted(health_log) == ({CameraFault.STAMP_GAP: lost} if lost else {})


def test_lost_frames_without_an_empty_period_are_only_counted() -> None:
    there = [step for step in range(600) if step % 5 == 0]  # of 30 a second, as raw best effort loses them
    frame_count, health_log = stamped([*map(float, range(10)), *jittered(there[2:], 0.15)])
    assert (health_log.health, health_log.reasons) == (Health.OK, ())
    assert counted(health_log)[CameraFault.STAMP_GAP] > 0
    assert frame_count == 20
