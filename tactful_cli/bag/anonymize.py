"""`tactful bag anonymize, video`: what may leave, or be coded."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from norm_core.bags.reader import BagError
from norm_core.runtime.config import load_config
from norm_core.runtime.wording import count_of
from norm_monitor.senses.microphone.pcm import PcmFormat, check_shape, from_bytes
from study_desk.log.recording import from_bag
from study_desk.log.session_config import participants_of
from study_desk.privacy.anonymize import anonymize as make_anonymous
from study_desk.privacy.redact import KeyFile, NamesToRemove, RedactionPolicy
from study_desk.privacy.sound import audible_spans
from study_desk.privacy.topic_treatments import AnonymizeOptions, AudioTreatment, NoFacePolicy
from study_desk.report.bag_video import VideoOptions, write_video
from tactful_cli.console import err, print_json, remark
from tactful_cli.study.arguments import SessionPeople
from tactful_cli.study.pages import face_finder
from tactful_cli.up.profile import ProfileError, load
from tactful_cli.verb import AsJson

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


app = typer.Typer()

_PCM_FIELDS = {"sample_format": str, "rate_hz": int, "channels": int}


@app.command()
def anonymize(  # noqa: PLR0917
    bag: BagPath,
    made: MadePath,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Additional topic to copy unchanged. Repeatable."),
    ] = None,
    audio: Annotated[
        AudioTreatment, typer.Option(help="Drop all sound, or mute every voice without consent.")
    ] = AudioTreatment.DROP,
    profile: SoundProfile = "",
    no_face: NoFace = NoFacePolicy.BLUR,
    participant: SessionPeople = None,
    voice: ConsentingVoices = None,
    no_words: Annotated[
        list[str] | None, typer.Option(help="Pseudonym of a participant whose words are removed. Repeatable.")
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(help="Key file with the names to remove; store it apart from the output.")
    ] = None,
    policy: Annotated[Path | None, typer.Option(help="YAML redaction policy for words; default: remove names.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a shareable copy of a bag: blur faces, drop or mute sound, remove names and drop unlisted topics.

    Detectors miss faces and names: look through the contact sheet beside it before you share it.
    """
    choices = AnonymizeOptions(
        audio=audio,
        sound_formats=sound_formats_of(profile) if profile else {},
        no_face=no_face,
        keep=tuple(keep or ()),
        participants=participants_of(participant or (), voice or (), no_words or ()),
        names=KeyFile(keys).names() if keys else NamesToRemove(),
        policy=load_config(RedactionPolicy, policy) if policy else RedactionPolicy(),
    )
    sheet = made.with_name(f"{made.name}-contact-sheet")
    with progress("anonymizing") as tell:
        report = make_anonymous(bag, made, choices, face_finder(), tell, sheet_folder=sheet)
    if as_json:
        print_json(asdict(report))
        return
    print(f"{made}: {count_of(sum(topic.written for topic in report.topics), 'message')}")
    for topic in report.topics:
        print(f"  {topic.topic}: {topic.told()}")
    remark(*report.warnings)
    if report.contact_sheet:
        print(f"next: look through {report.contact_sheet} before you share {made}, then delete it")


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
    made: Annotated[Path, typer.Argument(metavar="OUT.mp4", help="New file to write; must not exist.")],
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
    if made.suffix.lower() != ".mp4" or made.exists():
        raise BagError(f"{made}: is there already, or does not end in .mp4; name a new file such as session.mp4")
    spans: tuple[tuple[int, int], ...] | None = None
    if sound is Sound.CONSENTED:
        recording = from_bag(bag)
        people = participants_of(participant or (), voice or ())
        recording = replace(recording, info=replace(recording.info, participants=people))
        spans = tuple(audible_spans(recording, recording.start_ns, recording.end_ns))
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
    remark(*report.remarks)
