"""Anonymize a bag as far as a machine can: choose the treatment of each topic, apply it, and report it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from enum import StrEnum
from pathlib import Path

from norm_core.bags.reader import BagError, BagMessage, BagReader
from norm_core.bags.topic import BagTopic
from norm_core.bags.types import serialize
from norm_core.bags.writer import atomic_bag
from norm_core.records.decision import Decision
from norm_core.records.flag import SocialFlag
from norm_core.records.messages import RECORDS, MessageError, message_type
from norm_core.records.presence import Presence
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.topics import DECISIONS_JSON_TOPIC, FLAGS_JSON_TOPIC
from norm_core.runtime.wording import count_of
from norm_monitor.privacy.blur import PICTURES, FindFaces, NoFacePolicy, PictureBlurring
from norm_monitor.privacy.sound import VoiceMuting, audible_spans, sound_formats
from norm_monitor.senses.camera.picture import PictureFormatError
from norm_monitor.senses.microphone.pcm import PcmFormat, SoundError
from norm_monitor.session_log.recording import from_bag
from norm_monitor.session_log.redact import NamesToRemove, RedactionPolicy, Redactor, replace_texts
from norm_monitor.session_log.schema import Participant

# Types that hold pictures or words which are not searched, and topics that repeat words which are, by their endings.
_NEVER_KEPT_TYPES = ("/CompressedVideo", "/FFMPEGPacket", "theora_image_transport/msg/Packet", "/LiveSpeech")
_MIRRORS = (f"/{FLAGS_JSON_TOPIC}", f"/{DECISIONS_JSON_TOPIC}")
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

    def summary(self) -> str:
        """Describe the treatment of the topic in one line."""
        if self.treatment is Treatment.DROPPED:
            return f"dropped, {count_of(self.messages, 'message')}: {self.why}"
        facts = f"{self.treatment.value}, {self.written} of {count_of(self.messages, 'message')}"
        if self.treatment is Treatment.BLURRED:
            facts += f"; {self.blurred_by_face} with faces blurred ({count_of(self.faces, 'face')} found)"
            facts += f", {self.blurred_whole} blurred whole, {self.left} left as recorded"
        else:
            facts += f", {self.changed} of them changed"
        if self.unreadable:
            facts += f"; {self.unreadable} left out as they cannot be read"
        if self.cut:
            facts += f"; {self.cut} with a text too long, of which the end is left out"
        return f"{facts}; {self.why}" if self.why else facts


@record
class AnonymityReport:
    """The treatment of each topic, and warnings about what a reader must still check."""

    made: str
    topics: tuple[TopicReport, ...]
    faces_were_looked_for: bool
    warnings: tuple[str, ...]


def _treatment(topic: BagTopic, choices: AnonymizeOptions, sounds: Collection[str]) -> tuple[Treatment, str]:
    """Decide the treatment of a topic, with the reason. Unknown and unlisted topics are dropped."""
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


def anonymize(
    bag: Path,
    made: Path,
    choices: AnonymizeOptions,
    find: FindFaces | None,
    progress: Callable[[int, int], None] = lambda done, whole: None,
) -> AnonymityReport:
    """Write the shareable part of a bag to `made`, in two passes: find faces and names, then remove them."""
    with BagReader(bag) as reader:
        reader.require(choices.keep)
        work = _Work(bag, reader, choices, find)
        names = work.topics_with(Treatment.BLURRED, Treatment.REDACTED)
        passing = work.topics_with(*(set(Treatment) - {Treatment.DROPPED}))
        counts = {topic.topic: topic.message_count for topic in reader.topics}
        whole = sum(counts[name] for name in (*names, *passing))
        done = 0
        for message in reader.messages(names) if names else ():
            work.collect(message)
            progress(done := done + 1, whole)
        with atomic_bag(made) as writer:
            for message in reader.messages(passing) if passing else ():
                changed = work.treat(message)
                if changed is not None:
                    writer.write_copied(reader.with_definitions(message), changed, message.stamp_ns)
                progress(done := done + 1, whole)
            return work.report(str(made))


class _Work:
    def __init__(
        self,
        bag: Path,
        reader: BagReader,
        choices: AnonymizeOptions,
        find: FindFaces | None,
    ) -> None:
        self._reader, self._find = reader, find
        self._topics = {topic.key: topic for topic in reader.topics}
        self._formats = sound_formats(reader, choices.sound_formats)
        self._fates = {topic.key: _treatment(topic, choices, self._formats) for topic in reader.topics}
        self._redactor = Redactor(choices.policy, choices.names, choices.participants)
        self._pictures = {
            key: PictureBlurring(find, choices.no_face)
            for key, (treatment, _) in self._fates.items()
            if treatment is Treatment.BLURRED
        }
        self._sound = VoiceMuting([])
        self._unlabelled: list[str] = []  # pseudonyms with consent to sound whom no utterance names
        if self.topics_with(Treatment.MUTED):
            recording = from_bag(bag)
            recording = replace(recording, info=replace(recording.info, participants=choices.participants))
            labels = {utterance.speaker_id for utterance in recording.utterances}
            self._unlabelled = [p.pseudonym for p in choices.participants if p.clips and not labels & {*p.person_ids}]
            bounds = reader.bounds_ns or (0, 0)
            self._sound = VoiceMuting(audible_spans(recording, bounds[0] - 10**10, bounds[1] + 10**10))
        self._counts = {
            key: dict.fromkeys(("messages", "written", "changed", "unreadable", "cut"), 0) for key in self._topics
        }

    def topics_with(self, *wanted: Treatment) -> list[str]:
        return sorted({topic for (topic, _), (treatment, _) in self._fates.items() if treatment in wanted})

    def collect(self, message: BagMessage) -> None:
        """First pass: collect faces and spoken names."""
        key = (message.topic, message.type_name)
        treatment, _ = self._fates[key]
        if treatment not in (Treatment.BLURRED, Treatment.REDACTED):
            return
        try:
            decoded = self._reader.decode(message)
        except (BagError, MessageError):  # the second pass counts it as left out
            decoded = None
        if treatment is Treatment.BLURRED:
            self._pictures[key].collect(decoded, message.stamp_ns)
        elif decoded is not None:
            self._redactor.clean(decoded)

    def treat(self, message: BagMessage) -> bytes | None:
        """Second pass: return the bytes to write, or None to leave the message out."""
        key = (message.topic, message.type_name)
        treatment, _ = self._fates[key]
        counts = self._counts[key]
        if treatment is Treatment.DROPPED:
            return None
        counts["messages"] += 1
        data: bytes | None = message.data
        try:
            data = self._anonymize(key, treatment, message)
        except (PictureFormatError, SoundError, BagError, MessageError):
            counts["unreadable"] += 1
            return None
        counts["written"] += data is not None
        counts["changed"] += data is not None and data != message.data
        return data

    def report(self, made: str) -> AnonymityReport:
        reports = []
        for key, topic in self._topics.items():
            treatment, why = self._fates[key]
            pictures = self._pictures.get(key)
            counts = self._counts[key] if treatment is not Treatment.DROPPED else {"messages": topic.message_count}
            reports.append(
                TopicReport(
                    topic=topic.topic,
                    type_name=topic.type_name,
                    treatment=treatment,
                    why=why,
                    faces=pictures.faces if pictures else 0,
                    blurred_by_face=pictures.blurred_by_face if pictures else 0,
                    blurred_whole=pictures.blurred_whole if pictures else 0,
                    left=pictures.left if pictures else 0,
                    **counts,
                )
            )
        return AnonymityReport(
            made=made,
            topics=tuple(sorted(reports, key=lambda r: (r.topic, r.type_name))),
            faces_were_looked_for=self._find is not None,
            warnings=(*_warnings(reports, looked=self._find is not None), *map(_muted_warning, self._unlabelled)),
        )

    def _anonymize(self, key: tuple[str, str], treatment: Treatment, message: BagMessage) -> bytes | None:
        pictures = self._pictures.get(key)
        cuts: list[int] = []
        try:
            decoded = self._reader.decode(message, cuts.append)
        except (BagError, MessageError):
            if pictures:
                pictures.skip()
            raise
        if pictures:
            changed = pictures.treat(decoded)
        elif treatment is Treatment.KEPT:
            changed = replace_texts(decoded, self._redactor.text)
        elif treatment is Treatment.MUTED:
            changed = self._sound.treat(decoded, message.stamp_ns, self._formats[message.topic])
        else:
            changed = replace_texts(self._redactor.clean(decoded), self._redactor.text)
        if changed is None:
            return None
        self._counts[key]["cut"] += bool(cuts)
        if changed is decoded and not cuts:
            return message.data
        return serialize(changed) if message.type_name in RECORDS else self._reader.encode(message, changed)


def _muted_warning(pseudonym: str) -> str:
    return (
        f"{pseudonym}: no utterance has a person id of theirs, so they are muted throughout; "
        f"name the ids that the transcript has: --participant {pseudonym}=ID"
    )


def _warnings(reports: list[TopicReport], *, looked: bool) -> tuple[str, ...]:
    pictures = sum(r.written for r in reports if r.treatment is Treatment.BLURRED)
    left = sum(r.left for r in reports)
    unseen = [r.topic for r in reports if r.treatment is Treatment.KEPT]
    warnings = []
    if left:
        warnings.append(
            f"no face was found in {left} of {pictures} pictures, which are left as recorded: a face may have "
            "been missed there; look through them, or blur them with --no-face blur"
        )
    if any(r.blurred_by_face for r in reports):
        warnings.append("a face may have been missed beside one that was found: look through the pictures")
    if pictures and not looked:
        warnings.append("faces could not be looked for: every picture is blurred as a whole")
    if unseen:
        warnings.append(
            f"{', '.join(unseen)} passed as recorded but for names and withheld words: see for yourself that they "
            "identify nobody"
        )
    if any(r.treatment is Treatment.REDACTED for r in reports):
        warnings.append(
            "names are found by a list and by introductions; a name said in passing may remain: read the words"
        )
    warnings += [
        f"{r.topic}: {r.unreadable} of {r.messages} messages of sound were left out, as their format is not known or "
        "has no silence: name the robot's profile with --profile"
        for r in reports
        if r.treatment is Treatment.MUTED and r.unreadable
    ]
    if any(r.treatment is Treatment.MUTED and r.written for r in reports):
        warnings.append("who speaks is taken from the transcript: a voice that it gives to the wrong speaker is heard")
    return tuple(warnings)
