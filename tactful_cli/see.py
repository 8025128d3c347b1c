"""`tactful see`: run the camera path on a bag and show selected frames, faults and faces."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from norm_core.bags.reader import BagError, BagReader
from norm_core.records.frame import Frame
from norm_core.records.json_codec import to_plain
from norm_core.records.presence import Presence
from norm_core.runtime.counters import describe
from norm_core.runtime.health_log import HealthLog
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import ns_to_s
from norm_core.runtime.wording import count_of
from norm_monitor.eyes import Eyes
from norm_monitor.senses.camera.faults import IMAGE_TYPES
from norm_monitor.senses.camera.frame_keeper import FrameConfig
from norm_monitor.senses.camera.picture import picture_of
from norm_monitor.senses.faces.finder import FaceFinder, FaceWeightsMissingError
from norm_monitor.senses.sensor_offsets import SensorOffsets
from tactful_cli.console import complain, err, print_json, print_table
from tactful_cli.verb import SensorOffsetsName, single

app = single()

KEPT = "norm_interfaces/msg/Frame"


@app.command()
def see(  # noqa: PLR0917
    bag: Annotated[Path, typer.Argument(metavar="BAG", help="Folder of a rosbag2 bag.")],
    topic: Annotated[str | None, typer.Option(help="Camera topic; default: the first in the bag.")] = None,
    keep_hz: Annotated[float, typer.Option(min=0.01, max=30, help="Frames to select per second of stamp time.")] = 1.0,
    faces: Annotated[bool, typer.Option(help="Detect faces.")] = True,
    sensor_offsets: SensorOffsetsName = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Show the frames selected from a bag's camera, its faults and its faces."""
    try:
        finder = FaceFinder() if faces else None
    except FaceWeightsMissingError as error:
        complain(f"camera: no faces are detected, because {error}")
        finder = None
    health_log = HealthLog(now_s=lambda: 0.0)  # a constant clock, so that early faults stay listed
    with BagReader(bag) as reader:
        topic = topic or first_camera(reader, bag)
        offset_ns, _ = SensorOffsets.of_replay(sensor_offsets, camera=topic)
        eyes = Eyes(topic, health_log, FrameConfig(keep_hz=keep_hz), finder, offset_ns=offset_ns)
        rows: list[tuple[Frame, Presence | None]] = []
        with err.status(f"{topic}: reading") as progress:
            for found in seen_in(reader, topic, eyes):
                if isinstance(found, Frame):
                    # Without its image, so that an hour takes only a few megabytes.
                    rows.append((replace(found, tile_jpeg=b""), None))
                else:
                    rows[-1] = rows[-1][0], found
                progress.update(f"{topic}: {count_of(len(rows), 'frame')} kept of {eyes.keeper.seen or len(rows)} seen")
    if as_json:
        counters = {counter.name: counter.count for counter in health_log.counters}
        listed = [_plain(frame, presence) for frame, presence in rows]
        print_json(
            {
                "topic": topic,
                "images": eyes.keeper.seen,
                "missing_by_stamps": eyes.keeper.sampler.missing_by_stamps,
                "faults": counters,
                "frames": listed,
            }
        )
        return
    table = Table(
        "frame", "source", "people", "largest face", "head", title=f"{topic}: {count_of(len(rows), 'frame')} kept"
    )
    for frame, presence in rows:
        table.add_row(*_cells(frame, presence, rows[0][0].stamp_ns))
    print_table(table)
    for line in describe(health_log.counters):
        err.print(line)
    for reason in health_log.reasons:
        err.print(reason)


def first_camera(reader: BagReader, bag: Path) -> str:
    """Return a bag's first topic of images, else of frames. Raises BagError where it has none."""
    for wanted in (IMAGE_TYPES, (KEPT,)):
        for summary in reader.topics:
            if summary.type_name in wanted:
                return summary.topic
    raise BagError(f"{bag}: has no topic of {', '.join(IMAGE_TYPES)} or {KEPT}; {PROGRAM} bag info lists its topics")


def seen_in(reader: BagReader, topic: str, eyes: Eyes) -> Iterator[Frame | Presence]:
    """Yield what the eyes make of a topic."""
    for message in reader.messages([topic]):
        if message.type_name not in (*IMAGE_TYPES, KEPT):
            raise BagError(f"{topic}: holds {message.type_name}; name a topic of {', '.join(IMAGE_TYPES)} with --topic")
        decoded = reader.decode(message)
        yield from eyes.take(decoded if isinstance(decoded, Frame) else picture_of(decoded))


def _plain(frame: Frame, presence: Presence | None) -> dict[str, Any]:
    plain: dict[str, Any] = {name: value for name, value in to_plain(frame).items() if name != "tile_jpeg"}
    return plain | {"presence": to_plain(presence) if presence else None}


def _cells(frame: Frame, presence: Presence | None, first_ns: int) -> tuple[str, ...]:
    source = f"{frame.source_width_px}x{frame.source_height_px} {frame.source_encoding}"
    at = f"{ns_to_s(frame.stamp_ns - first_ns):.2f} s"
    if presence is None:
        return at, source, "", "", ""
    people = f"{presence.state}, {len(presence.faces)}"
    if not presence.faces:
        return at, source, people, "", ""
    face = presence.faces[0]
    size = f"{face.width_ratio:.0%} x {face.height_ratio:.0%}"
    if face.yaw_deg is None or face.pitch_deg is None:
        return at, source, people, size, ""
    away = ", away" if face.looking_away else ""
    return at, source, people, size, f"yaw {face.yaw_deg:+.0f}, pitch {face.pitch_deg:+.0f}{away}"
