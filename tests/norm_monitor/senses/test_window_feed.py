"""Records to windows, and what the settings refuse."""

import pytest

from norm_core.records.frame import Frame
from norm_core.records.speech import Speaker, Utterance
from norm_core.runtime.config import ConfigError, check
from norm_core.runtime.time import NS_PER_S
from norm_monitor.windows.feed import WindowConfig, WindowFeed
from tests.norm_monitor.senses.camera_messages import START_NS

S = NS_PER_S


def frame(at_s: float) -> Frame:
    return Frame(
        stamp_ns=START_NS + round(at_s * S), source_topic="/c", source_encoding="jpeg", source_width_px=1,
        source_height_px=1, payload_sha256=f"{at_s}", tile_width_px=1, tile_height_px=1, tile_jpeg=b"",
    )  # fmt: skip


def said(at_s: float, text: str = "", final: bool = False) -> Utterance:
    at_ns = START_NS + round(at_s * S)
    return Utterance(
        stamp_ns=at_ns, utterance_id=f"u{at_s}", speaker=Speaker.USER, text=text, start_ns=at_ns, end_ns=at_ns,
        final=final,
    )  # fmt: skip


def feed() -> WindowFeed:
    return WindowFeed(WindowConfig(sources=("frames", "utterances"), lateness_s=0))


def test_silence_closes_windows_and_enters_none() -> None:
    cutting = feed()
    assert cutting.take(frame(1)) == cutting.take(frame(6)) == []
    (window,) = cutting.take(said(5))
    assert (window.late, len(window.frames), window.utterances) == (False, 1, ())


def test_speech_under_way_holds_its_window_open() -> None:
    cutting = feed()
    for record in (frame(1), frame(20), said(4, "where", final=False)):
        assert cutting.take(record) == []
    assert cutting.take(said(4, "where are", final=False)) == []
    assert cutting.take(said(4, "where are the whales", final=True)) == []
    first, *_ = cutting.take(said(12))
    assert [u.text for u in first.utterances] == ["where are the whales"]


def test_a_frame_after_a_jump_back_belongs_to_the_new_time() -> None:
    cutting = WindowFeed(WindowConfig(sources=("frames",)))
    cutting.take(frame(3600))
    cutting.take(frame(1))
    (window,) = cutting.take(frame(5))
    assert [f.payload_sha256 for f in window.frames] == ["1"]


def test_unknown_sources_are_refused() -> None:
    with pytest.raises(ConfigError, match="frames, presence, utterances"):
        check(WindowConfig, {"sources": ["smell"]}, "here")
