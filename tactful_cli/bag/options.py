"""Options that several verbs of `tactful bag` share."""

from pathlib import Path
from typing import Annotated

import typer

from norm_monitor.privacy.blur import NoFacePolicy
from norm_monitor.senses.microphone.pcm import PcmFormat, check_shape, decode_bytes
from tactful_cli.up.profile import ProfileError, load

# Parameters of ears that describe sound, with their types.
_PCM_TYPES = {"sample_format": str, "rate_hz": int, "channels": int}

BagPath = Annotated[Path, typer.Argument(metavar="BAG", help="Folder of a rosbag2 bag, or one .mcap or .db3 file.")]
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


def read_sound_formats(profile: str) -> dict[str, PcmFormat]:
    """Read the sound format of the ears of a profile, by their topic. Raises ProfileError if it is unusable."""
    ears = load(profile).parameters.get("ears")
    if ears is None:
        raise ProfileError(f"--profile: {profile} has no section /tactful/ears, which states the sound; add it")
    try:
        pcm_format = PcmFormat(**{name: type_(ears[name]) for name, type_ in _PCM_TYPES.items() if name in ears})
        check_shape(pcm_format.rate_hz, pcm_format.channels)
        decode_bytes(b"", pcm_format.sample_format)  # refuses an unknown one
    except (ValueError, TypeError) as error:
        raise ProfileError(f"--profile: {profile}: /tactful/ears: {error}; correct it") from error
    return {f"/{str(ears.get('audio_topic', 'audio')).lstrip('/')}": pcm_format}
