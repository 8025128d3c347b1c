"""`tactful bag video`: make a video of a bag for coders."""

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from norm_core.bags.reader import BagError
from norm_core.runtime.wording import count_of
from norm_monitor.privacy.bag_video import VideoOptions, write_video
from norm_monitor.privacy.blur import NoFacePolicy
from norm_monitor.privacy.sound import find_audible_spans
from norm_monitor.session_log.recording import load_bag
from tactful_cli.console import err, print_json, remark, show
from tactful_cli.progress import show_progress
from tactful_cli.session_options import face_finder
from tactful_cli.verb_options import AsJson, BagPath


class Sound(StrEnum):
    """Which sound a video has."""

    CONSENTED = "consented"
    ALL = "all"
    NONE = "none"


class Faces(StrEnum):
    """Whether a video shows faces."""

    BLUR = "blur"
    SHOW = "show"


def video(  # noqa: PLR0917
    bag: BagPath,
    out: Annotated[Path, typer.Argument(metavar="OUT.mp4", help="New file to write; must not exist.")],
    faces: Annotated[Faces, typer.Option(help="Blur faces, or show them as recorded.")] = Faces.BLUR,
    no_face: Annotated[
        NoFacePolicy, typer.Option(help="What to do with an image without a detected face: blur, leave or drop it.")
    ] = NoFacePolicy.BLUR,
    sound: Annotated[
        Sound, typer.Option(help="The robot and the voices that consented, all sound, or none.")
    ] = Sound.CONSENTED,
    voice: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Id in the transcript of a person who consented to sound. Repeatable."),
    ] = None,
    camera: Annotated[str, typer.Option(metavar="TOPIC", help="Default: the one with most pictures.")] = "",
    microphone: Annotated[str, typer.Option(metavar="TOPIC", help="Default: the one with most sound.")] = "",
    as_json: AsJson = False,
) -> None:
    """Make an MP4 from a bag, for ELAN and BORIS, with pictures and sound synchronised by their stamps.

    The detector misses faces: watch the video before you share it.
    """
    if out.suffix.lower() != ".mp4" or out.exists():
        raise BagError(f"{out}: is there already, or does not end in .mp4; name a new file such as session.mp4")
    spans: tuple[tuple[int, int], ...] | None = None
    if sound is Sound.CONSENTED:
        spans = tuple(find_audible_spans(load_bag(bag).utterances, voice or ()))
    options = VideoOptions(
        camera=camera,
        microphone=microphone,
        has_sound=sound is not Sound.NONE,
        audible_ns=spans,
        shows_faces=faces is Faces.SHOW,
        no_face=no_face,
    )
    finder = face_finder() if faces is Faces.BLUR else None
    with show_progress("making the video") as update:
        report = write_video(bag, out, options, finder, update)
    if as_json:
        print_json(asdict(report))
        return
    show(f"{out}: {report.length_s:.1f} s, {count_of(report.pictures, 'picture')} of {report.camera or 'no camera'}")
    if report.microphone and spans is not None:
        err.print(
            f"{report.microphone}: only the robot and voices that consented are heard; name them with --voice, or hear "
            "all with --sound all",
            markup=False,
        )
    remark(*report.remarks)
