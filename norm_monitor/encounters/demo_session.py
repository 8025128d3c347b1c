"""The demo session: two shipped encounters in sequence, each with a choice of the next action.

Its message types belong to every ROS 2, so it plays without any audio driver.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from norm_core.bags.reader import BagReader
from norm_core.bags.types import make
from norm_core.bags.writer import BagWriter
from norm_core.files.data_files import shipped_file
from norm_core.records.decision import Duplicable, OtherAgent, Viewpoint
from norm_core.records.episode import Query
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech
from norm_core.records.stamps import join_stamp
from norm_core.records.topics import QUERIES_TOPIC, ROBOT_SPEECH_TOPIC, full_topic
from norm_core.runtime.config import load_yaml
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.encounters.generate import AUDIO, CAMERA, make_header
from norm_monitor.encounters.library import HERE, Stretch, TrueEvent, TrueTurn, Truth, read_truth, write_truth
from norm_monitor.encounters.media import RATE_HZ, render_empty_room
from norm_monitor.senses.microphone.audio_message import make_stamp_label

ROBOT_SPEECH = full_topic(ROBOT_SPEECH_TOPIC)
QUERIES = full_topic(QUERIES_TOPIC)
AUDIO_TYPE = "std_msgs/msg/UInt8MultiArray"
# The time after each encounter in which its last words are transcribed and read.
QUIET_S = 6.0
# The lengths of the silent sound messages and of the steps between empty pictures.
_CHUNK_NS = NS_PER_S // 10
_FRAME_NS = NS_PER_S

Entry = tuple[int, str, Any]


@record
class Choice:
    """A question to the selector in an encounter, and its author's answer."""

    query: Query
    right: int


@record
class DemoScene:
    """One encounter, as the viewer sees it."""

    name: str
    title: str
    start_ns: int
    choice: Choice


@record
class DemoSession:
    """The paths of the demo. The labels lie beside the bag, never in it."""

    bag: Path
    truth: Truth
    scenes: tuple[DemoScene, ...]


def write_demo_session(bag: Path) -> DemoSession:
    """Write the session to a new bag. The content is always the same."""
    entries: list[Entry] = []
    scenes: list[DemoScene] = []
    turns: list[TrueTurn] = []
    events: list[TrueEvent] = []
    begin_ns = start_ns = 0
    for scene in load_yaml(shipped_file("norm_monitor.encounters", "demo_scenes.yaml")):
        name = scene["encounter"]
        shipped = HERE / "shipped" / name
        truth = read_truth(shipped)
        begin_ns = begin_ns or truth.start_ns
        start_ns = start_ns or begin_ns
        by_ns = start_ns - truth.start_ns
        query = Query(
            stamp_ns=start_ns + s_to_ns(scene["asked_s"]),
            query_id=f"{name}-choice",
            episode_id=name,
            task="action",
            options=tuple(scene["options"]),
            others_given=True,
            others=(OtherAgent(**scene["other"], duplicable=Duplicable.NO),),
            viewpoint_given=True,
            viewpoint=Viewpoint(description=scene["viewpoint"]),
        )
        choice = Choice(query=query, right=scene["right"])
        scenes.append(DemoScene(name=name, title=scene["title"], start_ns=start_ns, choice=choice))
        entries += [*shift_bag(shipped, by_ns), (query.stamp_ns, QUERIES, query)]
        turns += [
            replace(turn, turn_id=f"{name}-{turn.turn_id}", start_ns=turn.start_ns + by_ns, end_ns=turn.end_ns + by_ns)
            for turn in truth.turns
        ]
        events += [_shift_event(event, by_ns) for event in truth.events]
        heard_ns, seen_ns = (max(e[0] for e in entries if e[1] == topic) for topic in (AUDIO, CAMERA))
        start_ns = (heard_ns + s_to_ns(QUIET_S)) // NS_PER_S * NS_PER_S
        entries += _make_silence(heard_ns, seen_ns, start_ns)
    whole = Truth(
        encounter_id="demo",
        language="en",
        seed=0,
        start_ns=begin_ns,
        end_ns=start_ns,
        turns=tuple(turns),
        events=tuple(events),
    )
    with BagWriter(bag) as writer:
        for stamp_ns, topic, content in sorted(entries, key=lambda entry: entry[:2]):
            write = writer.write_message if hasattr(content, "__msgtype__") else writer.write
            write(topic, content, stamp_ns)
    write_truth(bag, whole)
    return DemoSession(bag=bag, truth=whole, scenes=tuple(scenes))


def shift_bag(shipped: Path, by_ns: int) -> Iterator[Entry]:
    """Yield the sensor and speech messages of a shipped bag, shifted in time."""
    with BagReader(shipped) as bag:
        for stored in bag.messages((AUDIO, CAMERA, ROBOT_SPEECH)):
            message, at_ns = bag.decode(stored), stored.stamp_ns + by_ns
            if isinstance(message, RobotSpeech):
                message = replace(message, stamp_ns=message.stamp_ns + by_ns)
            elif stored.topic == AUDIO:
                message = make_sound_message(message.audio.data.tobytes(), _read_stamp_ns(message) + by_ns)
            else:
                message = make_picture_message(message.data.tobytes(), _read_stamp_ns(message) + by_ns)
            yield at_ns, stored.topic, message


def _make_silence(heard_ns: int, seen_ns: int, end_ns: int) -> Iterator[Entry]:
    for at_ns in range(heard_ns, end_ns, _CHUNK_NS):
        samples = min(_CHUNK_NS, end_ns - at_ns) * RATE_HZ // NS_PER_S
        yield at_ns + _CHUNK_NS, AUDIO, make_sound_message(bytes(2 * samples), at_ns)
    for at_ns in range(seen_ns + _FRAME_NS, end_ns, _FRAME_NS):
        yield at_ns, CAMERA, make_picture_message(render_empty_room(), at_ns)


def make_sound_message(samples: bytes, stamp_ns: int) -> Any:
    """Build a message of stamped audio samples."""
    dimension = make(
        "std_msgs/msg/MultiArrayDimension",
        {"label": make_stamp_label(stamp_ns), "size": len(samples), "stride": len(samples)},
    )
    layout = make("std_msgs/msg/MultiArrayLayout", {"dim": [dimension], "data_offset": 0})
    return make(AUDIO_TYPE, {"layout": layout, "data": samples})


def make_picture_message(jpeg: bytes, stamp_ns: int) -> Any:
    """Build a message with one JPEG."""
    values = {"header": make_header(stamp_ns, "camera"), "format": "jpeg", "data": jpeg}
    return make("sensor_msgs/msg/CompressedImage", values)


def _read_stamp_ns(message: Any) -> int:
    return join_stamp(message.header.stamp.sec, message.header.stamp.nanosec)


def _shift_event(event: TrueEvent, by_ns: int) -> TrueEvent:
    return replace(
        event,
        onset_ns=event.onset_ns + by_ns,
        offset_ns=event.offset_ns + by_ns,
        evidence=tuple(Stretch(start_ns=e.start_ns + by_ns, end_ns=e.end_ns + by_ns) for e in event.evidence),
    )
