"""`tactful bag anonymize`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from norm_core.runtime.config import load_config
from norm_core.runtime.wording import count_of
from norm_monitor.senses.microphone.pcm import PcmFormat, check_shape, from_bytes
from study_desk.log.session_config import participants_of
from study_desk.privacy.anonymize import anonymize as make_anonymous
from study_desk.privacy.key_file import KeyFile
from study_desk.privacy.redact import NamesToRemove, RedactionPolicy
from study_desk.privacy.topic_treatments import AnonymizeOptions, AudioTreatment, NoFacePolicy
from tactful_cli.bag.arguments import (
    BagPath,
    ConsentingVoices,
    MadePath,
    NoFace,
    Participants,
    SoundProfile,
    progress,
)
from tactful_cli.console import print_json, remark
from tactful_cli.study.pages import face_finder
from tactful_cli.up.profile import ProfileError, load
from tactful_cli.verb import AsJson

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
    participant: Participants = None,
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
