"""What a shared bag may hold: no face that was found, no name that is known, no voice but consented ones."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from norm_core.bags.reader import BagError, BagReader
from norm_core.bags.types import make
from norm_core.bags.writer import BagWriter
from norm_core.records.decision import CandidateJudgement, Decision
from norm_core.records.frame import Frame
from norm_core.records.outcome import Outcome
from norm_core.records.presence import Face
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_core.records.text_limits import MAX_SPEECH_CHARACTERS
from norm_core.runtime.time import NS_PER_S
from norm_monitor.privacy.anonymize import (
    AnonymityReport,
    AnonymizeOptions,
    TopicReport,
    Treatment,
    anonymize,
)
from norm_monitor.privacy.blur import NoFacePolicy
from norm_monitor.senses.camera.picture import decode, make_picture
from norm_monitor.session_log.redact import NAME, NamesToRemove

START_NS = 1_700_000_000 * NS_PER_S
FACE = Face(left_ratio=0.4, top_ratio=0.4, width_ratio=0.2, height_ratio=0.2, confidence=0.9)
NOISE = np.random.default_rng(3).integers(0, 255, (120, 160, 3), np.uint8)


def found_at_third(image: Any) -> tuple[Face, ...]:
    """Stands for a detector: sees a face in pictures whose first pixels are bright."""
    return (FACE,) if image[:8, :8].mean() > 200 else ()


def at(second: float) -> int:
    return START_NS + round(second * NS_PER_S)


def header(stamp_ns: int) -> Any:
    stamp = make("builtin_interfaces/msg/Time", {"sec": stamp_ns // NS_PER_S, "nanosec": stamp_ns % NS_PER_S})
    return make("std_msgs/msg/Header", {"stamp": stamp, "frame_id": "camera"})


def compressed(stamp_ns: int, image: Any, codec: str = "jpeg") -> Any:
    encoded, data = cv2.imencode(f".{codec}", image)
    assert encoded
    values = {"header": header(stamp_ns), "format": f"bgr8; {codec} compressed bgr8", "data": data.tobytes()}
    return make("sensor_msgs/msg/CompressedImage", values)


def raw(stamp_ns: int, image: Any) -> Any:
    height, width = image.shape[:2]
    values = {"header": header(stamp_ns), "height": height, "width": width, "encoding": "rgb8", "is_bigendian": 0}
    return make("sensor_msgs/msg/Image", values | {"step": width * 3, "data": image[..., ::-1].tobytes()})


def said(text: str, second: float, speaker_id: str = "", speaker: Speaker = Speaker.USER) -> Utterance:
    return Utterance(
        stamp_ns=at(second), utterance_id=f"u{second}", speaker=speaker, speaker_id=speaker_id, text=text,
        start_ns=at(second), end_ns=at(second + 1),
    )  # fmt: skip


def decoded(bag: Path, topic: str) -> list[Any]:
    with BagReader(bag) as reader:
        return [reader.decode(message) for message in reader.messages([topic])]


def of(report: AnonymityReport, topic: str) -> TopicReport:
    return next(report_topic for report_topic in report.topics if report_topic.topic == topic)


def bright(image: Any) -> Any:
    image = image.copy()
    image[:8, :8] = 255
    return image


@pytest.mark.parametrize("kind", ["raw", "jpeg", "png", "frame"])
def test_a_found_face_is_blurred_here_and_in_the_pictures_around_it(tmp_path: Path, kind: str) -> None:
    images = [bright(NOISE) if index == 2 else NOISE for index in range(8)]
    with BagWriter(tmp_path / "bag") as bag:
        for index, image in enumerate(images):
            stamp_ns = at(index / 4)
            if kind == "frame":
                tile = compressed(0, image).data.tobytes()
                frame = Frame(
                    stamp_ns=stamp_ns, source_topic="/c", source_encoding="jpeg", source_width_px=160,
                    source_height_px=120, payload_sha256="0" * 64, tile_width_px=160, tile_height_px=120,
                    tile_jpeg=tile,
                )  # fmt: skip
                bag.write("/camera", frame, stamp_ns)
            elif kind == "raw":
                bag.write_message("/camera", raw(stamp_ns, image), stamp_ns)
            else:
                bag.write_message(
                    "/camera", raw(stamp_ns, image) if kind == "raw" else compressed(stamp_ns, image, kind), stamp_ns
                )
    report = anonymize(tmp_path / "bag", tmp_path / "new", AnonymizeOptions(no_face=NoFacePolicy.LEAVE), found_at_third)
    camera = of(report, "/camera")
    assert camera.treatment is Treatment.BLURRED
    assert (camera.written, camera.faces, camera.changed) == (8, 1, 5)
    assert (camera.blurred_by_face, camera.blurred_whole, camera.left) == (5, 0, 3)
    contrast = []
    for message in decoded(tmp_path / "new", "/camera"):
        pixels = (
            cv2.imdecode(np.frombuffer(message.tile_jpeg, np.uint8), cv2.IMREAD_COLOR)
            if kind == "frame"
            else decode(make_picture(message))
        )
        assert pixels is not None
        assert pixels.shape == NOISE.shape
        contrast.append(float(pixels[50:70, 66:94].std()))
    assert [value < 25 for value in contrast] == [True] * 5 + [False] * 3
    assert any("no face was found in 3 of 8 pictures" in warning for warning in report.warnings)


@pytest.mark.parametrize(
    ("choice", "confidence", "counts"),
    [
        (NoFacePolicy.BLUR, 0, (0, 1, 0)),
        (NoFacePolicy.DROP, 0, (0, 0, 0)),
        (NoFacePolicy.BLUR, 0.3, (0, 1, 0)),
        (NoFacePolicy.LEAVE, 0.3, (1, 0, 0)),
        (NoFacePolicy.DROP, 0.3, (0, 0, 0)),
    ],
)
def test_an_uncertain_face_is_blurred_but_does_not_count_as_found(
    tmp_path: Path, choice: NoFacePolicy, confidence: float, counts: tuple[int, int, int]
) -> None:
    with BagWriter(tmp_path / "bag") as bag:
        bag.write_message("/camera", compressed(at(0), NOISE), at(0))
    faces = (replace(FACE, confidence=confidence),) if confidence else ()
    report = anonymize(tmp_path / "bag", tmp_path / "new", AnonymizeOptions(no_face=choice), lambda image: faces)
    camera = of(report, "/camera")
    assert (camera.blurred_by_face, camera.blurred_whole, camera.left) == counts
    assert (camera.faces, camera.written, camera.changed) == (0, sum(counts), sum(counts))
    if counts[1]:
        assert decode(make_picture(decoded(tmp_path / "new", "/camera")[0])).std() < NOISE.std() / 2


def test_without_a_detector_pictures_are_blurred_whole_with_a_warning(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag") as bag:
        bag.write_message("/camera", raw(at(0), NOISE), at(0))
    report = anonymize(tmp_path / "bag", tmp_path / "new", AnonymizeOptions(), None)
    assert decode(make_picture(decoded(tmp_path / "new", "/camera")[0])).std() < NOISE.std() / 2
    assert not report.faces_were_looked_for
    assert "every picture is blurred as a whole" in report.warnings[0]


def test_unreadable_pictures_are_left_out(tmp_path: Path) -> None:
    damaged = compressed(at(0), NOISE)
    damaged.data = damaged.data[: len(damaged.data) // 2]
    depth = make("sensor_msgs/msg/Image", {
        "header": header(at(1)), "height": 2, "width": 2, "encoding": "32FC1", "is_bigendian": 0, "step": 8,
        "data": bytes(16),
    })  # fmt: skip
    with BagWriter(tmp_path / "bag") as bag:
        bag.write_message("/camera", damaged, at(0))
        bag.write_message("/camera", compressed(at(1), bright(NOISE)), at(1))
        bag.write_message("/depth", depth, at(1))
        bag.write_serialized("/other", "sensor_msgs/msg/Image", b"\0\1\0\0oops", at(1))
    report = anonymize(tmp_path / "bag", tmp_path / "new", AnonymizeOptions(), found_at_third)
    assert {r.topic: (r.written, r.unreadable) for r in report.topics} == {
        "/camera": (1, 1), "/depth": (0, 1), "/other": (0, 1)
    }  # fmt: skip
    assert len(decoded(tmp_path / "new", "/camera")) == 1


def test_names_are_removed_also_before_their_introduction(tmp_path: Path) -> None:
    judged = CandidateJudgement(index=0, action="Hand Ana her book", veto_reason="Zoltan reads it")
    decision = Decision(
        stamp_ns=at(3), decided_ns=at(3), decision_id="d", outcome=Outcome.ABSTAINED, candidates=(judged,)
    )  # fmt: skip
    with BagWriter(tmp_path / "bag") as bag:
        bag.write("/u", said("Good day, Zoltan", 0, "Ana"), at(0))
        bag.write("/u", said("My name is Zoltan", 1), at(1))
        bag.write("/r", RobotSpeech(stamp_ns=at(2), speech_id="s", state=SpeechEdge.START, text="Hello Ana"), at(2))
        bag.write("/d", decision, at(3))
    choices = AnonymizeOptions(names=NamesToRemove(by_name=(("Ana Quartermaine", "P-1"),)))
    report = anonymize(tmp_path / "bag", tmp_path / "new", choices, None)
    assert [(u.text, u.speaker_id) for u in decoded(tmp_path / "new", "/u")] == [
        (f"Good day, {NAME}", "P-1"), (f"My name is {NAME}", "")
    ]  # fmt: skip
    assert decoded(tmp_path / "new", "/r")[0].text == "Hello P-1"
    (candidate,) = decoded(tmp_path / "new", "/d")[0].candidates
    assert (candidate.action, candidate.veto_reason) == ("Hand P-1 her book", f"{NAME} reads it")
    everything = b"".join(path.read_bytes() for path in (tmp_path / "new").iterdir())
    assert not [name for name in (b"Ana", b"Zoltan") if name in everything]
    assert of(report, "/u").changed == 2


def test_a_text_over_the_limit_is_cut_and_reported(tmp_path: Path) -> None:
    """What a reader cuts at its border is not searched for names."""
    with BagWriter(tmp_path / "bag") as bag:
        bag.write("/u", said("x" * MAX_SPEECH_CHARACTERS + " Zoltan", 0), at(0))
        bag.write("/u", said("Good day", 1), at(1))
    report = anonymize(tmp_path / "bag", tmp_path / "new", AnonymizeOptions(), None)
    assert [len(u.text) for u in decoded(tmp_path / "new", "/u")] == [MAX_SPEECH_CHARACTERS, 8]
    assert b"Zoltan" not in b"".join(path.read_bytes() for path in (tmp_path / "new").iterdir())
    summary = "redacted, 2 of 2 messages, 1 of them changed; 1 with a text too long, of which the end is left out"
    assert of(report, "/u").summary() == summary


def test_unlisted_topics_are_dropped_and_pictures_cannot_be_listed(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag") as bag:
        for topic in ("/notes", "/battery"):
            bag.write_message(topic, make("std_msgs/msg/String", {"data": "Zoltan"}), at(0))
        bag.write_message("/camera", compressed(at(0), NOISE), at(0))
    report = anonymize(tmp_path / "bag", tmp_path / "new", AnonymizeOptions(keep=("/battery",)), None)
    assert of(report, "/notes").treatment is Treatment.DROPPED
    with BagReader(tmp_path / "new") as reader:
        assert [topic.topic for topic in reader.topics] == ["/battery", "/camera"]
    assert any("/battery passed as recorded" in warning for warning in report.warnings)
    with pytest.raises(BagError, match=r"/camera: holds .* never kept as it is"):
        anonymize(tmp_path / "bag", tmp_path / "other", AnonymizeOptions(keep=("/camera",)), None)
    with pytest.raises(BagError, match="has no topic /typo"):
        anonymize(tmp_path / "bag", tmp_path / "other", AnonymizeOptions(keep=("/typo",)), None)
    assert not (tmp_path / "other").exists()
