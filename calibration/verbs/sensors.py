"""`tactful calibrate sensors`: how far microphone, camera and robot speech lie apart in a bag."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from calibration.sensors.alignment import Method
from calibration.sensors.measurement import Measurement, Topics, measure
from norm_core.bags.reader import BagReader
from norm_core.records.json_codec import to_plain
from norm_core.runtime.artefact import artefact_path, write_artefact
from norm_core.runtime.errors import TactfulError
from norm_monitor.replay.bag_driver import robot_topics_of
from norm_monitor.senses.camera.faults import IMAGE_TYPES
from norm_monitor.senses.sensor_offsets import SensorOffsets
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from tactful_cli.console import complain, err, out, print_json, print_table
from tactful_cli.hear import audio_topics, check_audio_topic, only_audio_topic
from tactful_cli.verb import AsJson, RobotTopics, single

app = single()
_CANNOT_TELL = 1


@app.command()
def calibrate(  # noqa: PLR0917
    folder: Annotated[Path, typer.Argument(metavar="BAG", help="rosbag2 folder with the sensors' topics.")],
    methods: Annotated[
        list[Method] | None,
        typer.Option(
            "--from",
            help="clap: hands that close, seen and heard; flash: a light that is switched with a click or a beep; "
            "speech: the robot's own voice (default). Repeatable.",
        ),
    ] = None,
    topic: Annotated[str, typer.Option(help="Audio topic of the bag; default: the only one.")] = "",
    camera_topic: Annotated[str, typer.Option(help="Camera topic of the bag; default: the only one.")] = "",
    robot_topic: RobotTopics = None,
    channel: Annotated[int, typer.Option(min=-1, max=7, help="Audio channel to use; -1: the mean of all.")] = 0,
    write: Annotated[
        str, typer.Option("--write", metavar="NAME|FILE", help="Write the offsets, for sensor_offsets of the nodes.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Measure how far microphone, camera and robot speech lie apart. Exits with 1 where it cannot tell."""
    methods = list(dict.fromkeys(methods or [Method.SPEECH]))
    hearing = HearingConfig(channel=channel)
    with BagReader(folder) as bag:
        topics = _topics(bag, methods, hearing, topic, camera_topic, tuple(robot_topic or ()))
        measurement = measure(bag, topics, methods, hearing)
        digest = _digest(bag.paths)
    if as_json:
        print_json(to_plain(measurement))
    else:
        _show(measurement)
    cannot = [f"{method}: {offset.why}" for method, offset in measurement.offsets.items() if offset.offset_ms is None]
    for why in cannot:
        complain(f"cannot tell: {why}")
    if write:
        _write(measurement, write, measurement.artefact(folder.name, digest))
    if cannot:
        raise typer.Exit(_CANNOT_TELL)


def _topics(  # noqa: PLR0917
    bag: BagReader,
    methods: Sequence[Method],
    hearing: HearingConfig,
    topic: str,
    camera_topic: str,
    robot_topics: tuple[str, ...],
) -> Topics:
    robot = robot_topics_of(bag, robot_topics) if Method.SPEECH in methods else frozenset()
    if topic:
        check_audio_topic(bag, topic, hearing.stated)
        microphone = topic
    else:
        there = set(audio_topics(bag, hearing.stated)) - robot
        microphone = only_audio_topic(bag, hearing.stated, robot) if there else ""
    cameras = [topic.topic for topic in bag.topics if topic.type_name in IMAGE_TYPES and topic.message_count]
    if camera_topic:
        bag.require([camera_topic])
        if camera_topic not in cameras:
            raise TactfulError(f"--camera-topic: {camera_topic} holds no pictures; name one of {cameras}")
        cameras = [camera_topic]
    if len(cameras) > 1 and {Method.CLAP, Method.FLASH} & set(methods):
        raise TactfulError(f"the bag's cameras are {', '.join(cameras)}; name one with --camera-topic")
    return Topics(
        microphone=microphone,
        camera=cameras[0] if cameras else "",
        robot_speech=robot_topics or tuple(sorted(robot)),
        robot_speech_in_bag=robot,
    )


def _show(measurement: Measurement) -> None:
    table = Table("from", "moves the stamps of", "offset", "events", "agree")
    for method, offset in measurement.offsets.items():
        source = ", ".join(measurement.topics.robot_speech) if method is Method.SPEECH else measurement.topics.camera
        offset_text = (
            "cannot tell" if offset.offset_ms is None else f"{offset.offset_ms:+.1f} ± {offset.uncertainty_ms:.1f} ms"
        )
        table.add_row(method, escape(source), offset_text, str(offset.found), str(offset.agreeing))
    print_table(table)
    if levels := measurement.levels:
        out.print(
            f"microphone: noise floor {levels.noise_floor_dbfs} dBFS, loud parts {levels.loud_dbfs}, peak "
            f"{levels.peak_dbfs}",
            soft_wrap=True,
        )
        if levels.advice:
            err.print(f"microphone: {levels.advice}", soft_wrap=True)
    if echo := measurement.echo:
        rings = "" if echo.rings_ms is None else f", and rings for {echo.rings_ms:.0f} ms after it stops"
        when = f"{echo.delay_ms:+.0f} ms after its stated start, at {echo.level_dbfs} dBFS{rings}"
        out.print(f"echo: the robot's voice comes {when}", soft_wrap=True)


def _write(measurement: Measurement, name: str, offsets: SensorOffsets) -> None:
    settings = [
        name for name, measured in (("camera", measurement.camera), ("ears", measurement.robot_speech)) if measured
    ]
    if not settings:
        raise TactfulError(f"--write: {name} is not written, because no offset was found")
    path = artefact_path(name)
    write_artefact(offsets, path)
    nodes = " and ".join(settings)
    err.print(f"{path} was written; set sensor_offsets of {nodes} to {name} in your profile", soft_wrap=True)


def _digest(paths: Sequence[Path]) -> str:
    digest = sha256()
    for path in paths:
        with path.open("rb") as file:
            while part := file.read(1 << 20):
                digest.update(part)
    return digest.hexdigest()
