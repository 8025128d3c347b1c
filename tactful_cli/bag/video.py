"""`tactful bag video`."""

from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from norm_core.bags.reader import BagError
from norm_core.runtime.wording import count_of
from study_desk.log.recording import from_bag
from study_desk.log.session_config import participants_of
from study_desk.privacy.sound import audible_spans, join_spans
from study_desk.privacy.topic_treatments import NoFacePolicy
from study_desk.report.bag_video import VideoOptions, write_video
from tactful_cli.bag.anonymize import sound_formats_of
from tactful_cli.bag.arguments import BagPath, ConsentingVoices, NoFace, Participants, SoundProfile, progress
from tactful_cli.console import err, print_json
from tactful_cli.study.pages import face_finder
from tactful_cli.verb import AsJson

app = typer.Typer()


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
    made: Annotated[Path, typer.Argument(metavar="OUT.mp4", help="New file to write; must not exist.")],
    faces: Annotated[Faces, typer.Option(help="Blur faces, or show them as recorded.")] = Faces.BLUR,
    no_face: NoFace = NoFacePolicy.BLUR,
    sound: Annotated[
        Sound, typer.Option(help="The robot and the voices that consented, all sound, or none.")
    ] = Sound.CONSENTED,
    participant: Participants = None,
    voice: ConsentingVoices = None,
    camera: Annotated[str, typer.Option(metavar="TOPIC", help="Default: the one with most pictures.")] = "",
    microphone: Annotated[str, typer.Option(metavar="TOPIC", help="Default: the one with most sound.")] = "",
    profile: SoundProfile = "",
    as_json: AsJson = False,
) -> None:
    """Make an MP4 with sound from a bag, for ELAN and BORIS: pictures and sound in step by their stamps.

    Detectors miss faces: look through the video before you share it.
    """
    if made.suffix.lower() != ".mp4" or made.exists():
        raise BagError(f"{made}: is there already, or does not end in .mp4; name a new file such as session.mp4")
    spans: tuple[tuple[int, int], ...] | None = None
    if sound is Sound.CONSENTED:
        recording = from_bag(bag)
        people = participants_of(participant or (), voice or ())
        recording = replace(recording, info=replace(recording.info, participants=people))
        spans = tuple(join_spans(audible_spans(recording, recording.start_ns, recording.end_ns)))
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
        report = write_video(bag, made, options, finder, tell)
    if as_json:
        print_json(asdict(report))
        return
    print(f"{made}: {report.length_s:.1f} s, {count_of(report.pictures, 'picture')} of {report.camera or 'no camera'}")
    if report.microphone and spans is not None:
        err.print(
            f"{report.microphone}: only the robot and voices that consented are heard; name them with --participant "
            "and --voice, or hear all with --sound all",
            markup=False,
        )
    for remark in report.remarks:
        err.print(remark, markup=False)
