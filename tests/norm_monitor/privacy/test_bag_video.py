"""Videos of bags: flash and click in step as other decoders see and hear them, and only what consent allows."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner, Result

from norm_core.bags.types import make
from norm_core.bags.writer import BagWriter
from norm_core.records.presence import Face
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.time import NS_PER_S
from norm_monitor.privacy.bag_video import VideoOptions, write_video
from norm_monitor.privacy.blur import NoFacePolicy, PictureBlurring
from norm_monitor.privacy.sound import find_audible_spans
from norm_monitor.senses.microphone.audio_message import make_stamp_label
from norm_monitor.session_log.study_folder import init_study
from tactful_cli.main import app
from tests.study_session import write_bag

START_NS = 1_700_000_000 * NS_PER_S
RATE_HZ = 16_000
ALL = VideoOptions(audible_ns=None, shows_faces=True)
PLAIN = np.full((48, 64, 3), 60, np.uint8)
FACE = Face(left_ratio=0.4, top_ratio=0.4, width_ratio=0.2, height_ratio=0.2, confidence=0.9)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def write_picture(bag: BagWriter, stamp_ns: int, image: NDArray[np.uint8], delay_ns: int = 0) -> None:
    stamp = make("builtin_interfaces/msg/Time", {"sec": stamp_ns // NS_PER_S, "nanosec": stamp_ns % NS_PER_S})
    header = make("std_msgs/msg/Header", {"stamp": stamp, "frame_id": "camera"})
    values = {"header": header, "height": image.shape[0], "width": image.shape[1], "encoding": "bgr8"}
    values |= {"is_bigendian": 0, "step": image.shape[1] * 3, "data": image.ravel()}
    bag.write_message("/camera", make("sensor_msgs/msg/Image", values), stamp_ns + delay_ns)


def write_sound(bag: BagWriter, stamp_ns: int, samples: NDArray[np.int16], delay_ns: int = 0) -> None:
    dim = make("std_msgs/msg/MultiArrayDimension", {"label": make_stamp_label(stamp_ns), "size": 0, "stride": 0})
    layout = make("std_msgs/msg/MultiArrayLayout", {"dim": [dim], "data_offset": 0})
    data = np.frombuffer(samples.astype("<i2").tobytes(), np.uint8)
    length_ns = len(samples) * NS_PER_S // RATE_HZ
    message = make("std_msgs/msg/UInt8MultiArray", {"layout": layout, "data": data})
    bag.write_message("/audio", message, stamp_ns + length_ns + delay_ns)


def flashes_and_clicks(path: Path, *, seed: int) -> list[int]:
    """Eight seconds: frames with jitter, sound that starts late and has a gap, and each flash with a click."""
    chance = random.Random(seed)
    stamps_ns = [START_NS + number * 50_000_000 + chance.randint(-15_000_000, 15_000_000) for number in range(1, 160)]
    flashes_ns = [stamps_ns[number] for number in (25, 52, 71, 118, 140)]
    sound = np.zeros(8 * RATE_HZ, np.int16)
    for flash_ns in flashes_ns:
        sample = (flash_ns - START_NS) * RATE_HZ // NS_PER_S
        sound[sample : sample + 160] = 20_000
    heard = [*range(int(0.73 * RATE_HZ), 4 * RATE_HZ, 800), *range(5 * RATE_HZ + 77, 8 * RATE_HZ - 800, 800)]
    with BagWriter(path) as bag:
        events: list[tuple[int, int]] = [(stamp_ns, -1) for stamp_ns in stamps_ns]
        events += [(START_NS + sample * NS_PER_S // RATE_HZ, sample) for sample in heard]
        for stamp_ns, sample in sorted(events):
            late_ns = chance.randint(5_000_000, 90_000_000)
            if sample < 0:
                is_flash = stamp_ns in flashes_ns
                write_picture(bag, stamp_ns, np.full_like(PLAIN, 250 if is_flash else 20), late_ns)
            else:
                jitter_ns = chance.randint(-3_000_000, 3_000_000)
                write_sound(bag, stamp_ns + jitter_ns, sound[sample : sample + 800], late_ns)
    return flashes_ns


def seen_s(video: Path, brighter_than: float = 128) -> list[float]:
    """When each bright part begins, as OpenCV's own decoder tells it."""
    capture, was_bright = cv2.VideoCapture(str(video)), False
    starts_s: list[float] = []
    while True:
        is_there, image = capture.read()
        if not is_there:
            return starts_s
        if (is_bright := image.mean() > brighter_than) and not was_bright:
            starts_s.append(capture.get(cv2.CAP_PROP_POS_MSEC) / 1000)
        was_bright = is_bright


def heard(video: Path) -> tuple[NDArray[np.float32], int]:
    """The sound of a video from its time 0, and its rate."""
    with av.open(str(video)) as container:
        frames = list(container.decode(container.streams.audio[0]))
    whole = np.zeros(sum(frame.samples for frame in frames), np.float32)
    for frame in frames:
        assert frame.pts is not None
        first = max(0, frame.pts)
        whole[first : frame.pts + frame.samples] = frame.to_ndarray()[0][first - frame.pts :]
    return whole, frames[0].sample_rate


def heard_s(video: Path) -> list[float]:
    """When each click begins."""
    sound, rate_hz = heard(video)
    loud = np.flatnonzero(np.abs(sound) > 0.25) / rate_hz
    return [float(at_s) for at_s, before_s in zip(loud, [-1.0, *loud], strict=False) if at_s - before_s > 0.2]


@pytest.mark.parametrize("seed", range(2))
def test_flash_and_click_are_in_step_within_40_ms(tmp_path: Path, seed: int) -> None:
    flashes_ns = flashes_and_clicks(tmp_path / "bag", seed=seed)
    report = write_video(tmp_path / "bag", tmp_path / "a.mp4", VideoOptions(
        audible_ns=None, shows_faces=True, start_ns=START_NS
    ))  # fmt: skip
    wanted_s = [(flash_ns - START_NS) / NS_PER_S for flash_ns in flashes_ns]
    seen, clicks = seen_s(tmp_path / "a.mp4"), heard_s(tmp_path / "a.mp4")
    assert len(seen) == len(clicks) == len(flashes_ns)
    assert np.abs(np.subtract(seen, clicks)).max() < 0.04
    assert np.abs(np.subtract(seen, wanted_s)).max() < 0.03
    assert np.abs(np.subtract(clicks, wanted_s)).max() < 0.03
    assert (report.pictures, report.unreadable, report.stamped_otherwise, report.remarks) == (159, 0, 0, [])


def still(video: Path) -> NDArray[Any]:
    is_there, image = cv2.VideoCapture(str(video)).read()
    assert is_there
    return np.asarray(image, float)


def checks(image: NDArray[Any], left: int, top: int) -> float:
    """How much of the chequered pattern is left in a place."""
    return float(image[top : top + 12, left : left + 12].std())


@pytest.mark.parametrize(
    ("options", "find", "visible"),
    [
        (ALL, None, (True, True)),
        (VideoOptions(), lambda image: (FACE,), (False, True)),
        (VideoOptions(no_face=NoFacePolicy.LEAVE), lambda image: (), (True, True)),
        (VideoOptions(), lambda image: (), (False, False)),
        (VideoOptions(), None, (False, False)),
    ],
)
def test_faces_are_blurred_unless_they_may_be_shown(
    tmp_path: Path, options: VideoOptions, find: Any, visible: tuple[bool, bool]
) -> None:
    image = np.kron(np.indices((30, 40)).sum(axis=0) % 2 * 200, np.ones((4, 4))).astype(np.uint8)
    with BagWriter(tmp_path / "bag") as bag:
        for number in range(3):
            write_picture(bag, START_NS + number * NS_PER_S // 10, np.dstack([image] * 3))
    write_video(tmp_path / "bag", tmp_path / "a.mp4", options, find)
    shown = still(tmp_path / "a.mp4")
    assert (checks(shown, 74, 54) > 60, checks(shown, 4, 4) > 60) == visible


def test_a_found_face_is_blurred_here_and_in_the_pictures_around_it() -> None:
    images = [np.full_like(PLAIN, number) for number in range(8)]
    blurring = PictureBlurring(lambda image: (FACE,) if image[0, 0, 0] == 2 else (), NoFacePolicy.LEAVE)
    for number, image in enumerate(images):
        blurring.collect_pixels(image, START_NS + number * NS_PER_S // 4)
    assert [blurring.blur(image) is image for image in images] == [False] * 5 + [True] * 3


@pytest.mark.parametrize(
    ("policy", "confidence", "is_whole"),
    [
        (NoFacePolicy.BLUR, 0.0, True),
        (NoFacePolicy.BLUR, 0.3, True),
        (NoFacePolicy.LEAVE, 0.3, False),
        (NoFacePolicy.DROP, 0.0, None),
        (NoFacePolicy.DROP, 0.3, None),
    ],
)
def test_an_uncertain_face_is_blurred_but_does_not_count_as_found(
    policy: NoFacePolicy, confidence: float, is_whole: bool | None
) -> None:
    image = np.random.default_rng(3).integers(0, 255, (120, 160, 3), np.uint8)
    faces = (replace(FACE, confidence=confidence),) if confidence else ()
    blurring = PictureBlurring(lambda _: faces, policy)
    blurring.collect_pixels(image, START_NS)
    blurred = blurring.blur(image)
    if blurred is None:
        assert is_whole is None
    else:
        assert (blurred.std() < image.std() / 2) == is_whole


# The second in which each voice speaks alone, by its label in the transcript.
VOICES = {"robot": 1, "p1": 3, "": 5, "p2": 7, "passer_by": 9}


@pytest.mark.parametrize(
    ("consenting", "audible"),
    [([], ["robot"]), ([""], ["robot"]), (["p1"], ["robot", "p1"]), (["p1", "p2"], ["robot", "p1", "p2"])],
)
def test_only_labelled_voices_of_consenting_people_are_audible(consenting: list[str], audible: list[str]) -> None:
    utterances = tuple(
        Utterance(
            stamp_ns=START_NS, utterance_id=f"u{second}", text="x",
            speaker=Speaker.ROBOT if label == "robot" else Speaker.USER, speaker_id="" if label == "robot" else label,
            start_ns=START_NS + second * NS_PER_S, end_ns=START_NS + (second + 1) * NS_PER_S,
        )
        for label, second in VOICES.items()
    )  # fmt: skip
    spans = find_audible_spans(utterances, consenting)
    assert [(start - START_NS) // NS_PER_S for start, _ in spans] == [VOICES[label] for label in audible]


def test_stamps_of_another_clock_and_unreadable_messages_are_reported(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag") as bag:
        for number in range(20):
            write_picture(bag, START_NS - 86_400 * NS_PER_S, PLAIN, 86_400 * NS_PER_S + number * NS_PER_S // 10)
        write_sound(bag, START_NS, np.zeros(1600, np.int16))
        write_picture(bag, START_NS, PLAIN[:0])
    report = write_video(tmp_path / "bag", tmp_path / "a.mp4", ALL)
    assert (report.pictures, report.unreadable, report.stamped_otherwise) == (20, 1, 20)
    assert any("20 messages placed by the time of recording" in remark for remark in report.remarks)
    assert any("1 message left out" in remark for remark in report.remarks)


@pytest.mark.parametrize("consents", [True, False])
def test_a_pack_has_the_video_of_a_session_if_all_consented(tmp_path: Path, consents: bool) -> None:
    study = init_study(tmp_path / "study", "library", ["none"], ["C-1"]).folder
    write_bag(tmp_path / "bag", length_s=40, flags=2)
    run("study", "participant", study, "P-7K3MX", "--words", *(["--coders"] if consents else []))
    added = run("study", "add", study, tmp_path / "bag", "--session", "S1", "--condition", "none", "--participant",
        "P-7K3MX=person_1")  # fmt: skip
    assert added.exit_code == 0, (added.output, added.exception)
    packed = run("study", "pack", study, study / "pack", "--coder", "C-1", "--media", "--json")
    if consents:
        assert packed.exit_code == 0, (packed.output, packed.exception)
        assert (study / "pack/media/S1.mp4").is_file()
        project = json.loads((study / "pack/C-1.boris").read_text())["observations"]["S1"]
        assert project["file"]["1"] == ["media/S1.mp4"]
        assert 'RELATIVE_MEDIA_URL="./media/S1.mp4"' in (study / "pack/1_S1_C-1.eaf").read_text()
        assert project["media_info"]["hasVideo"] == project["media_info"]["hasAudio"] == {"media/S1.mp4": True}
        assert project["media_info"]["length"]["media/S1.mp4"] == pytest.approx(40, abs=1.5)
        assert "pack media" in (study / "outputs.jsonl").read_text()
    else:
        assert "P-7K3MX did not agree to be watched by coders" in str(packed.exception)
        assert not (study / "pack").exists()
