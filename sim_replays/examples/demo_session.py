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
from norm_core.records.decision import Duplicable, OtherAgent, Viewpoint
from norm_core.records.episode import Query
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech
from norm_core.runtime.time import NS_PER_S, join_stamp, s_to_ns, split_stamp
from norm_monitor.senses.microphone.audio_message import stamp_label
from sim_replays.scenarios.library import HERE
from sim_replays.scenarios.picture import empty_room
from sim_replays.scenarios.records import AUDIO, CAMERA
from sim_replays.scenarios.truth import Stretch, TrueEvent, TrueTurn, Truth, read_truth, write_truth
from sim_replays.scenarios.voice import RATE_HZ

ROBOT_SPEECH, QUERIES = "/tactful/robot_speech", "/tactful/queries"
AUDIO_TYPE = "std_msgs/msg/UInt8MultiArray"
QUIET_S = 6.0  # after each encounter, time to transcribe the last words and read them
_CHUNK_NS, _FRAME_NS = NS_PER_S // 10, NS_PER_S

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
    for name, title, choice in _SCENES:
        shipped = HERE / "shipped" / name
        truth = read_truth(shipped)
        begin_ns = begin_ns or truth.start_ns
        start_ns = start_ns or begin_ns
        by_ns = start_ns - truth.start_ns
        asked_ns = choice.query.stamp_ns + start_ns
        query = replace(choice.query, stamp_ns=asked_ns, query_id=f"{name}-choice", episode_id=name)
        scenes.append(DemoScene(name=name, title=title, start_ns=start_ns, choice=replace(choice, query=query)))
        entries += [*shift_record(shipped, by_ns), (query.stamp_ns, QUERIES, query)]
        turns += [_turn(turn, by_ns, name) for turn in truth.turns]
        events += [_event(event, by_ns) for event in truth.events]
        heard_ns, seen_ns = (max(e[0] for e in entries if e[1] == topic) for topic in (AUDIO, CAMERA))
        start_ns = (heard_ns + s_to_ns(QUIET_S)) // NS_PER_S * NS_PER_S
        entries += _quiet(heard_ns, seen_ns, start_ns)
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


def shift_record(shipped: Path, by_ns: int) -> Iterator[Entry]:
    """Yield the sensor and speech messages of a shipped bag, shifted in time."""
    with BagReader(shipped) as bag:
        for stored in bag.messages((AUDIO, CAMERA, ROBOT_SPEECH)):
            message, at_ns = bag.decode(stored), stored.stamp_ns + by_ns
            if isinstance(message, RobotSpeech):
                message = replace(message, stamp_ns=message.stamp_ns + by_ns)
            elif stored.topic == AUDIO:
                message = sound_message(message.audio.data.tobytes(), _stamp_ns(message) + by_ns)
            else:
                message = picture_message(message.data.tobytes(), _stamp_ns(message) + by_ns)
            yield at_ns, stored.topic, message


def _quiet(heard_ns: int, seen_ns: int, end_ns: int) -> Iterator[Entry]:
    """Yield silence and an empty room between two encounters."""
    for at_ns in range(heard_ns, end_ns, _CHUNK_NS):
        samples = min(_CHUNK_NS, end_ns - at_ns) * RATE_HZ // NS_PER_S
        yield at_ns + _CHUNK_NS, AUDIO, sound_message(bytes(2 * samples), at_ns)
    for at_ns in range(seen_ns + _FRAME_NS, end_ns, _FRAME_NS):
        yield at_ns, CAMERA, picture_message(empty_room(), at_ns)


def sound_message(samples: bytes, stamp_ns: int) -> Any:
    """Build a message of stamped audio samples."""
    dimension = make(
        "std_msgs/msg/MultiArrayDimension",
        {"label": stamp_label(stamp_ns), "size": len(samples), "stride": len(samples)},
    )
    layout = make("std_msgs/msg/MultiArrayLayout", {"dim": [dimension], "data_offset": 0})
    return make(AUDIO_TYPE, {"layout": layout, "data": samples})


def picture_message(jpeg: bytes, stamp_ns: int) -> Any:
    """Build a message with one JPEG."""
    sec, nanosec = split_stamp(stamp_ns)
    stamp = make("builtin_interfaces/msg/Time", {"sec": sec, "nanosec": nanosec})
    header = make("std_msgs/msg/Header", {"stamp": stamp, "frame_id": "camera"})
    return make("sensor_msgs/msg/CompressedImage", {"header": header, "format": "jpeg", "data": jpeg})


def _stamp_ns(message: Any) -> int:
    return join_stamp(message.header.stamp.sec, message.header.stamp.nanosec)


def _turn(turn: TrueTurn, by_ns: int, scene: str) -> TrueTurn:
    return replace(turn, turn_id=f"{scene}-{turn.turn_id}", start_ns=turn.start_ns + by_ns, end_ns=turn.end_ns + by_ns)


def _event(event: TrueEvent, by_ns: int) -> TrueEvent:
    return replace(
        event,
        onset_ns=event.onset_ns + by_ns,
        offset_ns=event.offset_ns + by_ns,
        evidence=tuple(Stretch(start_ns=e.start_ns + by_ns, end_ns=e.end_ns + by_ns) for e in event.evidence),
    )


def _choice(at_s: float, options: tuple[str, ...], right: int, other: OtherAgent, scene: str) -> Choice:
    query = Query(
        stamp_ns=s_to_ns(at_s),
        query_id="",
        episode_id="",
        task="action",
        options=options,
        others_given=True,
        others=(other,),
        viewpoint_given=True,
        viewpoint=Viewpoint(description=scene),
    )
    return Choice(query=query, right=right)


_SCENES = (
    (
        "zoo_keeper",
        "A guide in the penguin house and a boy on a school trip",
        _choice(
            24.2,
            (
                "Throw fish to the penguins.",
                "Wish the boy a good day with his class.",
                "Sweep the floor of the ticket office.",
            ),
            1,
            OtherAgent(
                agent_id="keeper", role="keeper", doing="throwing fish to the penguins", duplicable=Duplicable.NO
            ),
            "A boy says that he has to catch up with his class; the guide stands beside him.",
        ),
    ),
    (
        "kiosk_directions",
        "A kiosk robot and a woman who asks for the way",
        _choice(
            13.5,
            (
                "Sell her an umbrella.",
                "Serve the man his newspaper.",
                "Tell her the way to the old bridge.",
            ),
            2,
            OtherAgent(
                agent_id="seller", role="seller", doing="selling a newspaper to a man", duplicable=Duplicable.NO
            ),
            "A woman before the kiosk asks for the way to the old bridge.",
        ),
    ),
)
