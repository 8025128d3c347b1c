"""Windows are cut by stamps and watermarks alone."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from norm_core.records.frame import Frame
from norm_core.records.speech import Speaker, Utterance
from norm_core.records.window import Window, window_digest
from norm_core.runtime.time import NS_PER_S
from norm_monitor.windows.cutter import Purpose, WindowCutter
from tests.node_records import camera_frame

S = NS_PER_S
BOTH = ("camera", "speech")


def frame(at_ns: int, size: int = 10) -> Frame:
    return camera_frame(at_ns, bytes(size))


def utterance(at_ns: int) -> Utterance:
    return Utterance(
        stamp_ns=at_ns, utterance_id=f"u{at_ns}", speaker=Speaker.USER, text="yes", start_ns=at_ns, end_ns=at_ns + 1
    )


def bounds(windows: list[Window]) -> list[tuple[int, int]]:
    return [(w.start_ns // S, w.end_ns // S) for w in windows]


def advance(cutter: WindowCutter, source: str, watermark_ns: int) -> list[Window]:
    return [*cutter.advance(source, watermark_ns), *(window for window, _ in cutter.closable_windows())]


def test_a_window_waits_for_every_source() -> None:
    cutter = WindowCutter(BOTH, lateness_ns=None)
    cutter.add(frame(3 * S))
    assert advance(cutter, "camera", 100 * S) == []
    assert bounds(advance(cutter, "speech", 11 * S)) == [(-10, 5), (-5, 10)]


def test_a_missing_source_is_named_after_the_lateness() -> None:
    cutter = WindowCutter(BOTH, lateness_ns=3 * S)
    cutter.add(frame(3 * S))
    assert advance(cutter, "camera", 8 * S - 1) == []
    (window,) = advance(cutter, "camera", 8 * S)
    assert window.late
    assert window.missing == ("speech",)


def test_an_event_has_a_window_of_its_own() -> None:
    cutter = WindowCutter(("camera",))
    cutter.add(frame(3 * S))
    cutter.request(4 * S, Purpose.CUE)
    assert bounds(advance(cutter, "camera", 5 * S)) == [(-11, 4), (-10, 5)]


def test_jump_back_flushes_and_restarts() -> None:
    cutter = WindowCutter(("camera",))
    cutter.add(frame(3600 * S))
    advance(cutter, "camera", 3600 * S)
    flushed = advance(cutter, "camera", 2 * S)
    assert flushed
    assert all(w.late for w in flushed)
    cutter.add(frame(3 * S))
    assert bounds(advance(cutter, "camera", 5 * S)) == [(-10, 5)]


def test_end_of_input_closes_all_windows() -> None:
    cutter = WindowCutter((*BOTH, "presence"), lateness_ns=None)
    assert cutter.end_input() is None
    cutter.add(frame(3 * S))
    cutter.add(utterance(6 * S))
    advance(cutter, "camera", 4 * S)
    advance(cutter, "speech", 6 * S)
    assert cutter.end_input() == 6 * S + 2
    windows = [window for window, _ in cutter.closable_windows(6 * S + 2)]
    assert [w.end_ns for w in windows] == [5 * S, 6 * S + 2]
    assert {w.missing for w in windows} == {("presence",)}  # it never gave anything, and the others have ended


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 60 * 4), min_size=1, max_size=30, unique=True),
    st.lists(st.integers(0, 60 * 4), max_size=15, unique=True),
    st.randoms(use_true_random=False),
    st.integers(0, 2),  # seconds that speech lags behind, less than the lateness
)
def test_any_order_of_arrival_gives_the_same_windows(
    frames: list[int], talk: list[int], random: Random, delay_s: int
) -> None:
    quarter = S // 4
    entries = [("camera", frame(q * quarter)) for q in frames] + [("speech", utterance(q * quarter)) for q in talk]

    def run(shuffle: bool) -> list[str]:
        cutter, windows = WindowCutter(BOTH), []
        for second in range(63):
            due = [(s, e) for s, e in entries if e.stamp_ns // S == second]
            if shuffle:
                random.shuffle(due)
            for _, entry in due:
                cutter.add(entry)
            moves = [("camera", (second + 1) * S), ("speech", max(0, second + 1 - (delay_s if shuffle else 0)) * S)]
            if shuffle:
                random.shuffle(moves)
            for source, mark in moves:
                windows += advance(cutter, source, mark)
        for source in BOTH:
            windows += advance(cutter, source, 200 * S)
        return [window_digest(w) for w in windows if not w.late]

    assert run(shuffle=True) == run(shuffle=False)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 50), st.integers(0, 5000))
def test_memory_is_bounded(most: int, size: int) -> None:
    cutter = WindowCutter(BOTH, lateness_ns=None, max_entries=most, max_bytes=20_000)
    for second in range(300):
        cutter.add(frame(second * S, size))
        advance(cutter, "camera", second * S)
    windows = advance(cutter, "speech", 300 * S)
    kept = {frame.stamp_ns for window in windows for frame in window.frames}
    assert len(kept) <= most
    assert len(kept) * size <= 20_000
    assert "entries_evicted" in {counter.name for counter in cutter.counters}
