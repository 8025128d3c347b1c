"""What verbs share that show the sessions of people, or hand them on."""

from typing import Annotated

import typer

from norm_core.bags.reader import BagReader
from norm_core.records.flag import SocialFlag
from norm_core.records.messages import message_type
from norm_monitor.privacy.blur import FindFaces, TiledFaceDetector
from norm_monitor.senses.faces.finder import FaceWeightsMissingError
from norm_monitor.view.page_server import LOOPBACK
from tactful_cli.console import complain

SessionPeople = Annotated[
    list[str] | None,
    typer.Option(
        "--participant",
        help="Pseudonym, with the person ids of this session after =: P-7K3MX=person_1,voice_2. Repeatable.",
    ),
]


def holds_flags(bag: BagReader) -> bool:
    """Whether the bag holds recorded flags."""
    return any(t.type_name == message_type(SocialFlag) and t.message_count for t in bag.topics)


def warn_of_listeners(host: str, shown: str) -> None:
    """Warn of an address that others reach, by what a link shows them."""
    if host not in LOOPBACK:
        complain(f"listening on {host}: whoever reaches this machine and has a link sees {shown}, unencrypted")


def face_finder() -> FindFaces | None:
    """Load the face detector. Returns None, and warns on standard error, where its weights are missing."""
    try:
        return TiledFaceDetector().find
    except FaceWeightsMissingError as error:
        complain(f"pictures are blurred as a whole, as faces cannot be found: {error}")
        return None
