"""`tactful bag`: inspect, recover, anonymize, film, record and play bags, with or without rosbag2."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from norm_core.bags.bag_recovery import BagRecoveryReport, recover_bag
from norm_core.bags.reader import BagError, BagReader
from norm_core.bags.types import Definitions
from norm_core.runtime.config import load_config
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.time import ns_to_s
from norm_core.runtime.wording import count_of
from norm_monitor.privacy.anonymize import AnonymizeOptions, Treatment
from norm_monitor.privacy.anonymize import anonymize as make_anonymous
from norm_monitor.privacy.bag_video import VideoOptions, write_video
from norm_monitor.privacy.blur import NoFacePolicy
from norm_monitor.privacy.sound import find_audible_spans
from norm_monitor.senses.microphone.pcm import PcmFormat, check_shape, from_bytes
from norm_monitor.session_log.key_file import KeyFile
from norm_monitor.session_log.recording import load_bag
from norm_monitor.session_log.redact import NamesToRemove, RedactionPolicy
from norm_monitor.session_log.session_config import parse_participants
from tactful_cli.console import err, on_one_line, print_json, print_result, print_table, remark, show
from tactful_cli.session_options import SessionPeople, face_finder
from tactful_cli.up.profile import ProfileError, load
from tactful_cli.verb import AsJson, group

BagPath = Annotated[Path, typer.Argument(metavar="BAG", help="Folder of a rosbag2 bag, or one .mcap or .db3 file.")]
MadePath = Annotated[Path, typer.Argument(metavar="OUT", help="New folder to write; must not exist.")]
NoFace = Annotated[
    NoFacePolicy, typer.Option(help="What to do with an image without a detected face: blur, leave or drop it.")
]
ConsentingVoices = Annotated[
    list[str] | None,
    typer.Option(help="Pseudonym of a participant who consented to sound, if the transcript labels them. Repeatable."),
]
SoundProfile = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE",
        help="Profile of the recorded robot, for the format of sound that does not state its own.",
    ),
]

_DRAWN_EVERY_S = 0.1


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on a terminal. Yields a function of (done, total)."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    # Without a thread that draws, so that this process can be copied while the bar is shown.
    hidden = not err.is_terminal
    with Progress(*columns, console=err, transient=True, disable=hidden, auto_refresh=False) as bar:
        task, drawn_s = bar.add_task(what, total=None), [0.0]

        def tell(done: int, whole: int) -> None:
            is_due = time.monotonic() > drawn_s[0] + _DRAWN_EVERY_S
            if is_due:
                drawn_s[0] = time.monotonic()
            bar.update(task, completed=done, total=whole, refresh=is_due)

        yield tell


DISCOVERY_S = 3.0  # the longest that ROS was seen to take to find the publishers of a topic

app = group("Inspect, recover, anonymize, show, record and play rosbag2 bags (docs/how-to/bags.md).")


@app.command()
def info(bag: BagPath, as_json: AsJson = False) -> None:
    """Show a bag's topics, types, message counts and length."""
    definitions = Definitions()
    with BagReader(bag) as reader:
        topics, bounds, count, notes = reader.topics, reader.bounds_ns, reader.message_count, reader.notes
        files = [{"file": file.name, "bytes": file.stat().st_size} for file in reader.paths]
    start_ns, end_ns = bounds or (None, None)
    length_s = ns_to_s(bounds[1] - bounds[0]) if bounds else 0.0
    unknown = sum(not definitions.is_known(topic) for topic in topics)
    if as_json:
        rows = [
            {
                "topic": t.topic,
                "type": t.type_name,
                "messages": t.message_count,
                "decoded": definitions.is_known(t),
                "latched": t.latched_depth > 0,
            }
            for t in topics
        ]
        result = {"messages": count, "start_ns": start_ns, "end_ns": end_ns, "length_s": length_s, "topics": rows}
        print_json(result | {"files": files, "notes": notes})
        return
    show(f"{bag}: {count_of(count, 'message')} in {length_s:.3f} s")
    table = Table("topic", "type", "messages", "remarks")
    for topic in topics:
        remarks = ("" if definitions.is_known(topic) else "type unknown", "latched" if topic.latched_depth else "")
        names = (escape(on_one_line(name)) for name in (topic.topic, topic.type_name))
        table.add_row(*names, str(topic.message_count), ", ".join(filter(None, remarks)))
    print_table(table)
    for note in notes:
        err.print(note, markup=False)
    if unknown:
        err.print(f"{count_of(unknown, 'topic')} of an unknown type: the messages can be copied, not decoded")


@app.command()
def play(
    bag: BagPath,
    rate: Annotated[float, typer.Option(help="Playback speed as a multiple of the recorded one.")] = 1.0,
) -> None:
    """Publish a bag's messages at the recorded pace."""
    _name_rosbag2(
        f"ros2 bag play {bag} --rate {rate:g} --exclude-topics /tactful/status /diagnostics",
        "waits for subscribers, plays no health of recorded nodes, and loses no message to a slow subscriber",
    )
    _host("bag_player", {"bag": str(bag.resolve()), "rate": float(rate)})


@app.command()
def record(
    bag: Annotated[Path, typer.Argument(metavar="BAG", help="New folder to write; must not exist.")],
    topics: Annotated[list[str] | None, typer.Argument(help="Topics to record; default: all.")] = None,
) -> None:
    """Record topics into a new bag until interrupted. Refuses a named topic that it cannot record."""
    _name_rosbag2(
        f"ros2 bag record -o {bag} {' '.join(['--topics', *topics] if topics else ['--all-topics'])}",
        "refuses what it cannot record, and publishes its health to up, watch and doctor",
    )
    parameters = {"bag": str(bag.resolve()), "topics": topics or ["*"], "wait_for_topics_s": DISCOVERY_S}
    _host("bag_recorder", parameters)


def _name_rosbag2(command: str, difference: str) -> None:
    """Name the standard tool's equal command where it is installed, and what only ours does."""
    prefixes = filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep))
    if any(Path(prefix, "share/ament_index/resource_index/packages/ros2bag").is_file() for prefix in prefixes):
        remark(f"bag: rosbag2 is installed, so `{command}` does this as well; only {PROGRAM} bag {difference}")


def _host(node: str, parameters: dict[str, Any]) -> None:
    # ROS reads a value as YAML; JSON is a safe subset of it.
    options = [part for name, value in parameters.items() for part in ("-p", f"{name}:={json.dumps(value)}")]
    command = [sys.executable, "-m", "norm_nodes.node_host", node, "--autostart", "--ros-args", *options]
    os.execv(sys.executable, command)


EXIT_LOSS = 1
_MAX_SHOWN = 12


@app.command()
def recover(bag: BagPath, out: MadePath, as_json: AsJson = False) -> None:
    """Write a valid bag from a damaged or unfinished one, and report the losses. Exits with 1 if data was lost."""
    with progress("recovering") as tell:
        report = recover_bag(bag, out, tell)
    if as_json:
        print_json(asdict(report) | {"cut": report.is_cut, "whole": report.is_whole})
    else:
        _show(report)
    if not report.is_whole:
        raise typer.Exit(EXIT_LOSS)


def _show(report: BagRecoveryReport) -> None:
    show(f"{report.made}: {count_of(report.messages, 'message')}")
    for topic, count in report.messages_by_topic.items():
        show(f"  {topic}: {count}")
    for note in report.notes:
        show(f"  note: {note}")
    for topic, count in report.lost_by_topic.items():
        show(f"  lost: {count} of {topic}")
    for stop in report.stops[:_MAX_SHOWN]:
        show(f"  {stop}")
    if report.is_cut:
        show(
            f"  it was cut short: what came after its last message, at {report.last_ns or 0} ns, is missing; "
            f"at most 2 s if {PROGRAM} bag record wrote it"
        )
    show("nothing is known to be lost" if report.is_whole else "something was lost")


_PCM_FIELDS = {"sample_format": str, "rate_hz": int, "channels": int}


@app.command()
def anonymize(  # noqa: PLR0917
    bag: BagPath,
    out: MadePath,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Additional topic to copy unchanged. Repeatable."),
    ] = None,
    no_face: NoFace = NoFacePolicy.BLUR,
    participant: SessionPeople = None,
    no_words: Annotated[
        list[str] | None, typer.Option(help="Pseudonym of a participant whose words are removed. Repeatable.")
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(help="Key file with the names to remove; store it apart from the output.")
    ] = None,
    policy: Annotated[Path | None, typer.Option(help="YAML redaction policy for words; default: remove names.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a shareable copy of a bag: blur faces, remove names, and drop sound and unlisted topics.

    Detectors miss faces and names: watch a video of the copy before you share it.
    """
    choices = AnonymizeOptions(
        no_face=no_face,
        keep=tuple(keep or ()),
        participants=parse_participants(participant or (), no_words=no_words or ()),
        names=KeyFile(keys).names() if keys else NamesToRemove(),
        policy=load_config(RedactionPolicy, policy) if policy else RedactionPolicy(),
    )
    with progress("anonymizing") as tell:
        report = make_anonymous(bag, out, choices, face_finder(), tell)
    lines = [f"{out}: {count_of(sum(topic.written for topic in report.topics), 'message')}"]
    lines += [f"  {topic.topic}: {topic.summary()}" for topic in report.topics]
    if any(topic.treatment is Treatment.BLURRED for topic in report.topics):
        lines.append(f"next: watch it before you share it: {PROGRAM} bag video {out} {out}.mp4 --faces show")
    print_result(asdict(report), *lines, as_json=as_json, notes=report.warnings)


def sound_formats_of(profile: str) -> dict[str, PcmFormat]:
    """Return the format that the profile's ears are told, by their topic."""
    ears = load(profile).parameters.get("ears")
    if ears is None:
        raise ProfileError(f"--profile: {profile} has no section /tactful/ears, which states the sound; add it")
    try:
        stated = PcmFormat(**{name: type_(ears[name]) for name, type_ in _PCM_FIELDS.items() if name in ears})
        check_shape(stated.rate_hz, stated.channels)
        from_bytes(b"", stated.sample_format)  # refuses an unknown one
    except (ValueError, TypeError) as error:
        raise ProfileError(f"--profile: {profile}: /tactful/ears: {error}; correct it") from error
    return {f"/{str(ears.get('audio_topic', 'audio')).lstrip('/')}": stated}


class Sound(StrEnum):
    """Which sound a video has."""

    CONSENTED = "consented"
    ALL = "all"
    NONE = "none"


class Faces(StrEnum):
    """Whether a video shows faces."""

    BLUR = "blur"
    SHOW = "show"


@app.command()
def video(  # noqa: PLR0917
    bag: BagPath,
    out: Annotated[Path, typer.Argument(metavar="OUT.mp4", help="New file to write; must not exist.")],
    faces: Annotated[Faces, typer.Option(help="Blur faces, or show them as recorded.")] = Faces.BLUR,
    no_face: NoFace = NoFacePolicy.BLUR,
    sound: Annotated[
        Sound, typer.Option(help="The robot and the voices that consented, all sound, or none.")
    ] = Sound.CONSENTED,
    participant: SessionPeople = None,
    voice: ConsentingVoices = None,
    camera: Annotated[str, typer.Option(metavar="TOPIC", help="Default: the one with most pictures.")] = "",
    microphone: Annotated[str, typer.Option(metavar="TOPIC", help="Default: the one with most sound.")] = "",
    profile: SoundProfile = "",
    as_json: AsJson = False,
) -> None:
    """Make an MP4 with sound from a bag, for ELAN and BORIS: pictures and sound in step by their stamps.

    Detectors miss faces: look through the video before you share it.
    """
    if out.suffix.lower() != ".mp4" or out.exists():
        raise BagError(f"{out}: is there already, or does not end in .mp4; name a new file such as session.mp4")
    spans: tuple[tuple[int, int], ...] | None = None
    if sound is Sound.CONSENTED:
        recording = load_bag(bag)
        people = parse_participants(participant or (), voice or ())
        recording = replace(recording, info=replace(recording.info, participants=people))
        spans = tuple(find_audible_spans(recording, recording.start_ns, recording.end_ns))
    options = VideoOptions(
        camera=camera,
        microphone=microphone,
        has_sound=sound is not Sound.NONE,
        audible_ns=spans,
        shows_faces=faces is Faces.SHOW,
        no_face=no_face,
        sound_formats=sound_formats_of(profile) if profile else {},
    )
    finder = face_finder() if faces is Faces.BLUR else None
    with progress("making the video") as tell:
        report = write_video(bag, out, options, finder, tell)
    if as_json:
        print_json(asdict(report))
        return
    show(f"{out}: {report.length_s:.1f} s, {count_of(report.pictures, 'picture')} of {report.camera or 'no camera'}")
    if report.microphone and spans is not None:
        err.print(
            f"{report.microphone}: only the robot and voices that consented are heard; name them with --participant "
            "and --voice, or hear all with --sound all",
            markup=False,
        )
    remark(*report.remarks)
