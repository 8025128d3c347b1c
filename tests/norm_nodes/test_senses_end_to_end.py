"""A shipped scenario heard and seen by the real nodes: windows close in silence too, and alike in a second run."""

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from norm_core.bags.reader import BagReader
from norm_core.records.messages import from_message
from norm_core.records.speech import Utterance
from norm_core.records.window import ClosedWindow
from norm_core.runtime.time import NS_PER_S, ns_to_s, s_to_ns
from norm_monitor.senses.faces.finder import SHORT_RANGE, FaceWeightsMissingError, onnx_file
from sim_replays.drivers.node_process import NodeProcess
from sim_replays.scenarios.library import HERE
from sim_replays.scenarios.truth import read_truth
from tests.foreign_bag import Maker, write
from tests.foreign_interfaces import ROS_DRIVERS, environment
from tests.observer import Observer
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.ros

SHIPPED = HERE / "shipped/factory_shift"
PLAYED_S = 20.0
# Long utterances hold windows open until they end; no window closes without what a busy machine is late with.
WINDOWS = {"length_s": 3.0, "step_s": 1.0, "lateness_s": PATIENCE_S}
# Sensors are heard best effort, and a busy machine then loses some: two runs are alike only where none is lost.
LOSSLESS = {"subscription": {"reliability": "reliable", "history": "keep_all"}}
CAMERA = {"stale_after_s": PATIENCE_S, "qos_overrides": {"/camera/image_raw/compressed": LOSSLESS}}
EARS = {
    "audio_type": "audio_common_msgs/msg/AudioDataStamped",
    "partial_every_s": 0.0,
    "qos_overrides": {"/audio": LOSSLESS},
}


def beginning(target: Path, length_s: float = PLAYED_S) -> Path:
    """The first seconds of the shipped bag, without what no sense of this test reads."""
    make = Maker(ROS_DRIVERS)
    with BagReader(SHIPPED) as bag:
        until_ns = (bag.bounds_ns or (0, 0))[0] + s_to_ns(length_s)
        topics = ["/audio", "/camera/image_raw/compressed", "/tactful/robot_speech"]
        kept = [(m.stamp_ns, m.topic, bag.decode(m)) for m in bag.messages(topics) if m.stamp_ns < until_ns]
    # The reader gives this project's own messages as records.
    entries = [(s, topic, m if hasattr(m, "__msgtype__") else make.of(m)) for s, topic, m in kept]
    return write(target, make, entries)


def play(bag: Path, observer: Observer, domain_id: int, until_ns: int) -> list[Any]:
    """What the windows and the ears said, in the order in which it came, up to the window that ends at until_ns."""
    from norm_nodes.convert import record_class
    from norm_nodes.endpoint import EVENTS

    heard: list[Any] = []

    def hear(type_: type, message: Any) -> None:
        heard.append(from_message(type_, message))

    subscriptions = [
        observer.node.create_subscription(record_class(type_), topic, partial(hear, type_), EVENTS)
        for type_, topic in ((ClosedWindow, "/tactful/windows"), (Utterance, "/tactful/utterances"))
    ]
    parameters: dict[str, dict[str, Any]] = {"camera": CAMERA, "ears": EARS, "monitor": {"windows": WINDOWS}}
    player = {"bag_player": {"bag": str(bag), "wait_for_subscribers_s": PATIENCE_S, "settled_s": 3.0}}
    with (
        NodeProcess(["camera"], parameters, domain_id),
        NodeProcess(["ears"], parameters, domain_id),
        NodeProcess(["monitor"], parameters, domain_id),
    ):
        for node in ("ears", "monitor"):
            observer.meet(node)
        with NodeProcess(["bag_player"], player, domain_id) as played:
            observer.until(lambda: not played.is_running(), "the bag's end")
            assert played.wait(PATIENCE_S) == 0, played.last_output()
        observer.until(lambda: any(w.end_ns >= until_ns for w in windows_of(heard)), "the windows")
        said = list(heard)
    for subscription in subscriptions:
        observer.node.destroy_subscription(subscription)
    return said


def windows_of(said: list[Any]) -> list[ClosedWindow]:
    """The windows on the grid; others are told of where a flag cites them."""
    return [one for one in said if isinstance(one, ClosedWindow) and one.end_ns % NS_PER_S == 0]


def test_windows_close_in_silence_and_are_the_same_in_a_second_run(
    ros_drivers: Path, observer: Observer, domain_id: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        onnx_file(SHORT_RANGE)
    except FaceWeightsMissingError as error:
        pytest.skip(str(error))
    for name, value in environment(ros_drivers).items():
        monkeypatch.setenv(name, value)
    bag = beginning(tmp_path / "bag")
    truth = read_truth(SHIPPED)
    # The last sound but a little: behind it nothing says how long it stays quiet.
    until_ns = truth.start_ns + s_to_ns(PLAYED_S - 2.0)
    runs = [play(bag, observer, domain_id, until_ns) for _ in range(2)]
    first, second = ([w for w in windows_of(run) if w.end_ns <= until_ns] for run in runs)
    assert [w.end_ns for w in first] == list(range(truth.start_ns + NS_PER_S, until_ns + 1, NS_PER_S))
    assert not [(w.end_ns, w.missing) for w in first if w.late or w.missing]
    assert [(w.end_ns, w.sha256) for w in first] == [(w.end_ns, w.sha256) for w in second]
    assert sum(w.utterance_count > 0 for w in first) >= 5

    turns = sorted(truth.turns, key=lambda turn: turn.start_ns)
    silences = [(a.end_ns, b.start_ns) for a, b in pairwise(turns) if b.start_ns < until_ns]
    begun_ns, ended_ns = max(silences, key=lambda silence: silence[1] - silence[0])
    assert ended_ns - begun_ns > 3 * NS_PER_S
    # What closes in the silence needs nothing that is said after it: here, nothing is.
    quiet_s = ns_to_s(ended_ns - truth.start_ns) - 0.5
    closed_ns = ended_ns - 3 * NS_PER_S // 2
    run = play(beginning(tmp_path / "quiet", quiet_s), observer, domain_id, closed_ns)
    in_silence = windows_of(run)
    marks = [one for one in run if isinstance(one, Utterance) and not one.final and not one.text]
    assert [mark for mark in marks if begun_ns + NS_PER_S < mark.start_ns < ended_ns]
    assert [(w.end_ns, w.sha256) for w in in_silence if w.end_ns <= closed_ns] == [
        (w.end_ns, w.sha256) for w in first if w.end_ns <= closed_ns
    ]
