"""What verbs share that show the sessions of people."""

from norm_core.bags.reader import BagReader
from norm_core.records.flag import SocialFlag
from norm_core.records.messages import message_type
from norm_monitor.privacy.blur import FindFaces, TiledFaceDetector
from norm_monitor.senses.faces.finder import FaceWeightsMissingError
from tactful_cli.console import complain


def holds_flags(bag: BagReader) -> bool:
    """Whether the bag holds recorded flags."""
    return any(t.type_name == message_type(SocialFlag) and t.message_count for t in bag.topics)


def face_finder() -> FindFaces | None:
    """Load the face detector. Returns None, and warns on standard error, where its weights are missing."""
    try:
        return TiledFaceDetector().find
    except FaceWeightsMissingError as error:
        complain(f"pictures are blurred as a whole, as faces cannot be found: {error}")
        return None
