"""A window's digest depends on what was sensed and when, and on nothing else."""

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from norm_core.records.frame import Frame
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance, Word
from norm_core.records.window import Window, gather_window, window_digest


def frame(stamp_ns: int, payload: str = "aa", tile: bytes = b"tile") -> Frame:
    return Frame(
        stamp_ns=stamp_ns,
        source_topic="/camera",
        source_encoding="jpeg",
        source_width_px=640,
        source_height_px=480,
        payload_sha256=payload,
        tile_width_px=448,
        tile_height_px=336,
        tile_jpeg=tile,
    )


def utterance(start_ns: int, text: str = "hello", final: bool = True) -> Utterance:
    return Utterance(
        stamp_ns=start_ns,
        utterance_id=f"u{start_ns}",
        speaker=Speaker.USER,
        text=text,
        start_ns=start_ns,
        end_ns=start_ns + 5,
        final=final,
    )


FRAMES = tuple(frame(t) for t in (1, 4, 8))
UTTERANCES = tuple(utterance(t) for t in (2, 6))
WORDS = (Word(text="hello", start_ns=2, end_ns=4, probability=0.54),)
SPEECH = (RobotSpeech(stamp_ns=3, speech_id="s", state=SpeechEdge.START),)
WINDOW = Window(start_ns=0, end_ns=10, frames=FRAMES, utterances=UTTERANCES, robot_speech=SPEECH)


def test_window_digest_is_the_same_on_every_machine() -> None:
    spelled_out = b'{"bounds":[0,10],"frames":[[1,"/camera","aa"]],"robot_speech":[],"utterances":[]}'
    assert window_digest(Window(start_ns=0, end_ns=10, frames=FRAMES[:1])) == hashlib.sha256(spelled_out).hexdigest()


@given(st.permutations(FRAMES), st.permutations(UTTERANCES))
def test_the_order_of_arrival_does_not_matter(frames: list[Frame], utterances: list[Utterance]) -> None:
    assert window_digest(replace(WINDOW, frames=tuple(frames), utterances=tuple(utterances))) == window_digest(WINDOW)
    assert gather_window(0, 10, frames, utterances, SPEECH) == WINDOW


@pytest.mark.parametrize(
    "same",
    [
        replace(WINDOW, late=True),
        replace(WINDOW, frames=(frame(1, tile=b"encoded again"), *FRAMES[1:])),
        replace(WINDOW, utterances=(replace(UTTERANCES[0], words=WORDS, confidence=0.54), UTTERANCES[1])),
    ],
    ids=["lateness", "tiles", "estimates"],
)
def test_derived_data_leaves_the_digest_unchanged(same: Window) -> None:
    assert window_digest(same) == window_digest(WINDOW)


@pytest.mark.parametrize(
    "other",
    [
        replace(WINDOW, end_ns=11),
        replace(WINDOW, start_ns=1),
        replace(WINDOW, frames=FRAMES[:-1]),
        replace(WINDOW, frames=(frame(1, payload="ab"), *FRAMES[1:])),
        replace(WINDOW, frames=(frame(0), *FRAMES[1:])),
        replace(WINDOW, utterances=(utterance(2, text="hallo"), *UTTERANCES[1:])),
        replace(WINDOW, robot_speech=()),
    ],
    ids=["end", "start", "a frame less", "a payload", "a stamp", "a word", "robot speech"],
)
def test_source_data_changes_the_digest(other: Window) -> None:
    assert window_digest(other) != window_digest(WINDOW)


def test_gathering_takes_the_start_and_leaves_the_end_and_the_unfinished() -> None:
    window = gather_window(1, 8, FRAMES, (*UTTERANCES, utterance(3, final=False)), SPEECH)
    assert [f.stamp_ns for f in window.frames] == [1, 4]
    assert [u.start_ns for u in window.utterances] == [2, 6]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"start_ns": 5, "end_ns": 5}, "cannot end"),
        ({"start_ns": 0, "end_ns": 10, "frames": (frame(10),)}, "outside the window"),
        ({"start_ns": 0, "end_ns": 10, "utterances": (utterance(1, final=False),)}, "only final"),
    ],
)
def test_invalid_window_is_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Window(**wrong)
