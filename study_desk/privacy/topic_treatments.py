"""Decide the treatment of each topic in a shared bag: identifying content is changed or left out."""

from collections.abc import Collection, Mapping
from dataclasses import field
from enum import StrEnum

from norm_core.bags.topic import BagError, BagTopic
from norm_core.records.decision import Decision
from norm_core.records.flag import SocialFlag
from norm_core.records.frame import Frame
from norm_core.records.messages import message_type
from norm_core.records.presence import Presence
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.runtime.wording import count_of
from norm_monitor.senses.camera.faults import IMAGE_TYPES
from norm_monitor.senses.microphone.pcm import PcmFormat
from study_desk.log.schema import Participant
from study_desk.privacy.redact import NamesToRemove, RedactionPolicy

PICTURES = (*IMAGE_TYPES, message_type(Frame))
# Types that hold pictures or words which are not searched, and topics that repeat words which are, by their endings.
_NEVER_KEPT_TYPES = ("/CompressedVideo", "/FFMPEGPacket", "theora_image_transport/msg/Packet", "/LiveSpeech")
_MIRRORS = ("/flags_json", "/decisions_json")
WORDS = tuple(message_type(cls) for cls in (Utterance, RobotSpeech, SocialFlag, Decision, Presence))


class Treatment(StrEnum):
    """What anonymization does with a topic."""

    BLURRED = "blurred"
    MUTED = "muted"
    REDACTED = "redacted"
    KEPT = "kept"
    DROPPED = "dropped"


class AudioTreatment(StrEnum):
    """What anonymization does with sound."""

    DROP = "drop"
    MUTE = "mute"


class NoFacePolicy(StrEnum):
    """What anonymization does with a picture in which no face is certain."""

    BLUR = "blur"
    LEAVE = "leave"
    DROP = "drop"


@record
class AnonymizeOptions:
    """The settings of anonymization. `keep` lists topics to copy unchanged; images and sound are not allowed.

    `sound_formats` are by topic, for messages that do not state theirs.
    """

    audio: AudioTreatment = AudioTreatment.DROP
    sound_formats: Mapping[str, PcmFormat] = field(default_factory=dict)
    no_face: NoFacePolicy = NoFacePolicy.BLUR
    keep: tuple[str, ...] = ()
    participants: tuple[Participant, ...] = ()
    names: NamesToRemove = NamesToRemove()
    policy: RedactionPolicy = RedactionPolicy()


@record
class TopicReport:
    """The treatment of a topic, with counts of its images: faces blurred, blurred whole, or unchanged."""

    topic: str
    type_name: str
    treatment: Treatment
    why: str = ""
    messages: int = 0
    written: int = 0
    changed: int = 0
    unreadable: int = 0  # left out, because their content is unknown
    cut: int = 0  # with a text too long to be searched as a whole
    faces: int = 0
    blurred_by_face: int = 0
    blurred_whole: int = 0
    left: int = 0

    def told(self) -> str:
        """Tell what was done with the topic."""
        if self.treatment is Treatment.DROPPED:
            return f"dropped, {count_of(self.messages, 'message')}: {self.why}"
        told = f"{self.treatment.value}, {self.written} of {count_of(self.messages, 'message')}"
        if self.treatment is Treatment.BLURRED:
            told += f"; {self.blurred_by_face} with faces blurred ({count_of(self.faces, 'face')} found)"
            told += f", {self.blurred_whole} blurred whole, {self.left} left as recorded"
        else:
            told += f", {self.changed} of them changed"
        if self.unreadable:
            told += f"; {self.unreadable} left out as they cannot be read"
        if self.cut:
            told += f"; {self.cut} with a text too long, of which the end is left out"
        return f"{told}; {self.why}" if self.why else told


@record
class AnonymityReport:
    """What was done with each topic, and what a reader must still check. `contact_sheet` is its page."""

    made: str
    topics: tuple[TopicReport, ...]
    faces_were_looked_for: bool
    warnings: tuple[str, ...]
    contact_sheet: str = ""


def treatments(
    topics: tuple[BagTopic, ...], choices: AnonymizeOptions, sounds: Collection[str]
) -> dict[tuple[str, str], tuple[Treatment, str]]:
    """Decide the treatment of each topic, with the reason. Unknown and unlisted topics are dropped."""
    return {topic.key: _treatment(topic, choices, sounds) for topic in topics}


def _treatment(topic: BagTopic, choices: AnonymizeOptions, sounds: Collection[str]) -> tuple[Treatment, str]:
    listed = topic.topic in choices.keep
    mute = choices.audio is AudioTreatment.MUTE
    if topic.type_name in PICTURES:
        treatment = (Treatment.BLURRED, "")
    elif topic.topic in sounds:
        treatment = (Treatment.MUTED, "") if mute else (Treatment.DROPPED, "sound, which is dropped unless it is muted")
    elif topic.type_name in WORDS:
        treatment = (Treatment.REDACTED, "")
    elif listed and topic.type_name.endswith(_NEVER_KEPT_TYPES):
        raise BagError(
            f"{topic.topic}: holds {topic.type_name}, which is not searched for people; take it off the list"
        )
    elif listed and topic.topic.endswith(_MIRRORS):
        raise BagError(
            f"{topic.topic}: repeats {topic.topic.removesuffix('_json')}, which is redacted; take it off the list"
        )
    elif listed:
        return Treatment.KEPT, "listed: passes as it is but for names and withheld words"
    elif mute and topic.type_name.endswith("/AudioInfo"):
        return Treatment.KEPT, "the format of the sound"
    else:
        return Treatment.DROPPED, "not listed"
    if listed:
        raise BagError(
            f"{topic.topic}: holds {topic.type_name}, which is {treatment[0]} and never kept as it is; "
            "take it off the list"
        )
    return treatment
