"""Windows over real DDS: the same bag gives the same digests at any pace, and as the pure path alone."""

from pathlib import Path
from typing import Any

import pytest

from norm_core.bags.reader import BagReader
from norm_core.bags.writer import BagWriter
from norm_core.records.episode import Query
from norm_core.records.frame import Frame
from norm_core.records.presence import Presence, PresenceState
from norm_core.records.speech import RobotSpeech, Speaker, SpeechEdge, Utterance
from norm_core.records.window import ClosedWindow
from norm_core.runtime.time import NS_PER_S, ReplayClock, s_to_ns
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.cues.threshold_table import ThresholdTable
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.windows.cutter import WindowConfig
from sim_replays.drivers.node_process import NodeProcess
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.ros

START_NS = 1_767_225_600 * NS_PER_S
LENGTH_S, LAG_NS = 12, s_to_ns(0.3)
WINDOWS: dict[str, Any] = {"length_s": 3.0, "step_s": 1.0, "lateness_s": 0.0}


def at(seconds: float) -> int:
    return START_NS + s_to_ns(seconds)


def frame(seconds: float) -> Frame:
    return Frame(
        stamp_ns=at(seconds), source_topic="/camera", source_encoding="jpeg", source_width_px=4, source_height_px=3,
        payload_sha256=f"{seconds}", tile_width_px=4, tile_height_px=3, tile_jpeg=b"tile",
    )  # fmt: skip


def presence(seconds: float) -> Presence:
    return Presence(stamp_ns=at(seconds), source_topic="/camera", state=PresenceState.ABSENT)


def speech(start_s: float, text: str = "", end_s: float | None = None) -> Utterance:
    """Something said, or, without a text, word of silence so far."""
    end_ns = at(start_s if end_s is None else end_s)
    return Utterance(
        stamp_ns=at(start_s), utterance_id=f"u{start_s}", speaker=Speaker.USER, text=text,
        start_ns=at(start_s), end_ns=end_ns, final=bool(text),
    )  # fmt: skip


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """What the senses publish of a short session, each record a little after its time."""
    entries: list[tuple[int, str, Any]] = []
    for tick in range(LENGTH_S + 1):
        entries += [(at(tick + 0.05), "frames", frame(tick)), (at(tick + 0.06), "presence", presence(tick))]
    quiet = (0.9, 1.9, 4.9, 5.9, 8.9, 9.9, 10.9, 11.9, 12.9)
    entries += [(at(s) + LAG_NS, "utterances", speech(s)) for s in quiet]
    entries += [(at(4.2) + LAG_NS, "utterances", speech(2.4, "where are the whales", 4.2))]
    entries += [(at(8.1) + LAG_NS, "utterances", speech(6.5, "thank you", 8.1))]
    for seconds, state in ((4.6, SpeechEdge.START), (6.2, SpeechEdge.STOP)):
        edge = RobotSpeech(stamp_ns=at(seconds), speech_id="s", state=state, text="Upstairs.")
        entries.append((edge.stamp_ns, "robot_speech", edge))
    query = Query(stamp_ns=at(7.3), query_id="q", episode_id="e", task="action")
    entries.append((query.stamp_ns, "queries", query))
    with BagWriter(tmp_path / "bag") as writer:
        for stamp_ns, topic, record in sorted(entries, key=lambda entry: entry[0]):
            writer.write(f"/tactful/{topic}", record, stamp_ns)
    return tmp_path / "bag"


def cut_directly(bag: Path) -> list[ClosedWindow]:
    monitor = Monitor(
        MonitorConfig(windows=WindowConfig(**WINDOWS)),
        ThresholdTable.shipped(),
        EncoderMatcher.shipped(),
        ReplayClock(),
    )
    found: list[ClosedWindow] = []
    with BagReader(bag) as reader:
        for message in reader.messages():
            monitor.take(reader.decode(message))
            found += monitor.closed_windows()
    return found


@pytest.mark.parametrize("executor", ["events", "single"])
@pytest.mark.parametrize("rate", [1.0, 200.0])
def test_windows_are_the_same_at_any_pace(
    rate: float, executor: str, bag: Path, domain_id: int, observer: Observer
) -> None:
    from norm_nodes.convert import from_ros, record_class
    from norm_nodes.endpoint import EVENTS

    told = observer.collect(record_class(ClosedWindow), "/tactful/windows", EVENTS)
    expected = cut_directly(bag)
    with NodeProcess(
        ["monitor"], {"monitor": {"windows": WINDOWS}}, domain_id, ("--autostart", "--executor", executor)
    ):
        observer.meet("monitor")
        with NodeProcess(["bag_player"], {"bag_player": {"bag": str(bag), "rate": rate}}, domain_id) as player:
            assert player.wait(PATIENCE_S) == 0
            observer.until(lambda: len(told) >= len(expected), f"{len(expected)} windows")
    windows = [from_ros(ClosedWindow, message) for message in told]
    assert [w for w in windows if not w.late] == expected
    on_grid = [w for w in expected if w.end_ns % NS_PER_S == 0]
    assert len(on_grid) == LENGTH_S
    assert sum(w.utterance_count for w in on_grid) == 6
    assert at(7.3) in {w.end_ns for w in expected}


def test_without_a_source_windows_close_late_and_name_it(bag: Path, domain_id: int, observer: Observer) -> None:
    from norm_nodes.convert import from_ros, record_class
    from norm_nodes.endpoint import EVENTS

    told = observer.collect(record_class(ClosedWindow), "/tactful/windows", EVENTS)
    statuses = observer.watch_status()
    frames = observer.node.create_publisher(record_class(Frame), "/tactful/frames", EVENTS)
    with NodeProcess(["monitor"], {"monitor": {"windows": WINDOWS | {"lateness_s": 2.0}}}, domain_id):
        observer.until(frames.get_subscription_count, "the monitor")
        observer.meet("monitor")
        from norm_nodes.convert import to_ros

        for seconds in range(6):
            frames.publish(to_ros(frame(seconds)))
        first = from_ros(ClosedWindow, observer.until(lambda: told and told[0], "a window"))
        assert first.late
        assert first.missing == ("presence", "utterances")
        observer.until(
            lambda: any(
                "presence: neither camera nor people is active" in reason and "utterances: ears is not active" in reason
                for s in statuses
                for reason in s.reasons
            ),
            "the status to name them",
        )
