"""A bag played by `ros2 bag play --clock`, or by what does the same, gives the closed flags of our own drivers."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from norm_core.bags.reader import BagReader
from norm_core.files.data_files import shipped_file
from norm_monitor.replay.node_driver import topics_of
from tests.acceptance.playback import LOSSLESS, play
from tests.acceptance.test_flags_many import flags
from tests.observer import Observer

pytestmark = pytest.mark.ros

FRAMES, PRESENCE, ENDED, FLAGS = "/tactful/frames", "/tactful/presence", "/tactful/input_ended", "/tactful/flags_json"

Json = dict[str, Any]


@pytest.fixture
def bag() -> Path:
    """A shipped bag with a camera and words."""
    return shipped_file("norm_monitor.encounters", "shipped") / "zh_teahouse"


def parameter_file(folder: Path, bag: Path, topics: Sequence[str]) -> Path:
    """Parameters that make the nodes follow /clock, wait for every source and lose no message."""
    there = topics_of(bag)
    overrides = {topic: {"subscription": LOSSLESS} for topic in topics}
    overrides |= {topic: {"subscription": LOSSLESS, "publisher": LOSSLESS} for topic in (FRAMES, PRESENCE)}
    shared = {"use_sim_time": True, "qos_overrides": overrides}
    monitor = {"windows": {"sources": list(there.sources), "lateness_s": 0.0}}
    camera = {"topic": there.camera, "stale_after_s": 0.0}
    tree = {
        f"/tactful/{node}": {"ros__parameters": shared | parameters}
        for node, parameters in (("monitor", monitor), ("camera", camera))
    }
    file = folder / "parameters.yaml"
    file.write_text(json.dumps(tree), encoding="utf-8")  # JSON is YAML, and has no aliases, which ROS cannot read
    return file


def lasting(flag: Json) -> Json:
    """A flag without when it was decided and how long that took."""
    fields = {name: value for name, value in flag.items() if name not in {"stamp_ns", "decision_ns"}}
    return fields | {"provenance": {name: value for name, value in flag["provenance"].items() if name != "latency"}}


def test_a_bag_played_with_its_clock_gives_the_flags_of_our_drivers(
    bag: Path, domain_id: int, observer: Observer, tmp_path: Path
) -> None:
    from std_msgs.msg import Empty, String

    expected = {flag["event_id"]: flag for flag in flags(bag)}
    assert expected
    assert {flag["state"] for flag in expected.values()} == {"closed"}
    with BagReader(bag) as reader:
        first_ns, last_ns = reader.bounds_ns or (0, 0)
        counts = {topic.topic: topic.message_count for topic in reader.topics}
    camera = topics_of(bag).camera
    nodes = ["camera", "monitor"] if camera else ["monitor"]
    messages = observer.collect(String, FLAGS, 1000)
    end_input = observer.node.create_publisher(Empty, ENDED, 1)
    parameters = parameter_file(tmp_path, bag, list(counts))
    command = [
        sys.executable,
        "-m",
        "norm_bench.replay_host",
        "--autostart",
        *nodes,
        "--ros-args",
        "--params-file",
        str(parameters),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline().startswith("running ")
            observer.meet("monitor")
            monitor = observer.settled_of("monitor")
            if camera:
                observer.until(
                    lambda: all(monitor().publisher_counts[topic] == 1 for topic in (FRAMES, PRESENCE)),
                    "a monitor that hears the camera",
                )
            by = play(bag, list(counts), tmp_path)
            if camera:
                sense = observer.settled_of("camera")
                observer.until(
                    lambda: (s := sense()).processed[camera] == counts[camera] and s.idle, "a camera that is done"
                )
                counts |= {topic: sense().published[topic] for topic in (FRAMES, PRESENCE)}
                del counts[camera]  # which the monitor does not take
            observer.until(lambda: counts.items() <= monitor().processed.items(), "a monitor that has taken all")
            observer.until(lambda: end_input.get_subscription_count() == 1, "a monitor that hears of the end")
            end_input.publish(Empty())
            observer.until(lambda: (s := monitor()).processed[ENDED] == 1 and s.idle, "a monitor that is done")
            observer.until(lambda: len(messages) == monitor().published[FLAGS], "every flag")
        finally:
            process.terminate()
    assert process.returncode == 0
    newest = {flag["event_id"]: flag for flag in (json.loads(message.data) for message in messages)}
    lasting_flags = {event_id: flag for event_id, flag in newest.items() if flag["state"] != "withdrawn"}
    assert not [flag for flag in lasting_flags.values() if flag["provenance"]["window_late"]], by
    assert {name: lasting(flag) for name, flag in lasting_flags.items()} == {
        name: lasting(flag) for name, flag in expected.items()
    }, by
    # They were decided by the bag's clock, which is not that of the machine.
    assert all(first_ns <= flag["decision_ns"] <= last_ns for flag in lasting_flags.values()), by
