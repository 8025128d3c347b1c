"""Anonymize a bag as far as a machine can: choose the treatment of each topic, apply it, and report it."""

from collections.abc import Callable, Collection
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
from norm_monitor.privacy.sound import find_sound_formats
from norm_monitor.senses.camera.picture import PictureFormatError
from norm_monitor.session_log.redact import NamesToRemove, RedactionPolicy, Redactor, clean_texts
from norm_monitor.session_log.schema import Participant

# Endings of types whose pictures or words are not searched.
_UNSEARCHED_TYPES = ("/CompressedVideo", "/FFMPEGPacket", "theora_image_transport/msg/Packet", "/LiveSpeech")
# Endings of topics that repeat redacted words.
_MIRROR_TOPICS = (f"/{FLAGS_JSON_TOPIC}", f"/{DECISIONS_JSON_TOPIC}")
# The types whose words are redacted.
_WORD_TYPES = tuple(message_type(cls) for cls in (Utterance, RobotSpeech, SocialFlag, Decision, Presence))


class Treatment(StrEnum):
    """What anonymization does with a topic."""

    BLURRED = "blurred"
    REDACTED = "redacted"
    KEPT = "kept"
    DROPPED = "dropped"


@record
class AnonymizeOptions:
    """The settings of anonymization. `keep` lists topics to copy; it allows no pictures and no sound."""

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


def _choose_treatment(topic: BagTopic, keep: Collection[str], sound_topics: Collection[str]) -> tuple[Treatment, str]:
    """Choose the treatment of a topic, and give the reason. Topics that are unknown or not listed are dropped.

    Raises BagError if a listed topic must not be kept.
    """
    is_listed = topic.topic in keep
    if topic.type_name in PICTURES:
        treatment = (Treatment.BLURRED, "")
    elif topic.topic in sound_topics:
        treatment = (Treatment.DROPPED, "sound")
    elif topic.type_name in _WORD_TYPES:
        treatment = (Treatment.REDACTED, "")
    elif is_listed and topic.type_name.endswith(_UNSEARCHED_TYPES):
        raise BagError(
            f"{topic.topic}: holds {topic.type_name}, which is not searched for people; take it off the list"
        )
    elif is_listed and topic.topic.endswith(_MIRROR_TOPICS):
        raise BagError(
            f"{topic.topic}: repeats {topic.topic.removesuffix('_json')}, which is redacted; take it off the list"
        )
    elif is_listed:
        return Treatment.KEPT, "listed: copied, but for names and withheld words"
    else:
        return Treatment.DROPPED, "not listed"
    if is_listed:
        raise BagError(
            f"{topic.topic}: holds {topic.type_name}, which is {treatment[0]} and never kept as it is; "
            "take it off the list"
        )
    return treatment


def anonymize(
    bag: Path,
    copy: Path,
    options: AnonymizeOptions,
    find_faces: FindFaces | None,
    report_progress: Callable[[int, int], None] = lambda done, total: None,
) -> AnonymityReport:
    """Write the shareable part of a bag to a new bag. The first pass finds faces and names, the second removes them."""
    with BagReader(bag) as reader:
        reader.check_topics(options.keep)
        anonymizer = _Anonymizer(reader, options, find_faces)
        searched_topics = anonymizer.list_topics(Treatment.BLURRED, Treatment.REDACTED)
        copied_topics = anonymizer.list_topics(*(set(Treatment) - {Treatment.DROPPED}))
        counts = {topic.topic: topic.message_count for topic in reader.topics}
        total = sum(counts[name] for name in (*searched_topics, *copied_topics))
        done = 0
        for message in reader.messages(searched_topics) if searched_topics else ():
            anonymizer.search(message)
            report_progress(done := done + 1, total)
        with atomic_bag(copy) as writer:
            for message in reader.messages(copied_topics) if copied_topics else ():
                data = anonymizer.anonymize(message)
                if data is not None:
                    writer.write_copied(reader.complete_topic_of(message), data, message.stamp_ns)
                report_progress(done := done + 1, total)
            return anonymizer.report(str(copy))


class _Anonymizer:
    """The state of one bag's two passes."""

    def __init__(self, reader: BagReader, options: AnonymizeOptions, find_faces: FindFaces | None) -> None:
        self._reader = reader
        self._has_face_finder = find_faces is not None
        self._topics = {topic.key: topic for topic in reader.topics}
        sound_topics = find_sound_formats(reader, {})
        self._treatments = {topic.key: _choose_treatment(topic, options.keep, sound_topics) for topic in reader.topics}
        self._redactor = Redactor(options.policy, options.names, options.participants)
        self._pictures = {
            key: PictureBlurring(find_faces, options.no_face)
            for key, (treatment, _) in self._treatments.items()
            if treatment is Treatment.BLURRED
        }
        self._counts = {
            key: dict.fromkeys(("messages", "written", "changed", "unreadable", "cut"), 0) for key in self._topics
        }

    def list_topics(self, *treatments: Treatment) -> list[str]:
        """List the topics that get one of these treatments."""
        return sorted({topic for (topic, _), (treatment, _) in self._treatments.items() if treatment in treatments})

    def search(self, message: BagMessage) -> None:
        """First pass: find faces and spoken names in a message."""
        key = (message.topic, message.type_name)
        treatment, _ = self._treatments[key]
        if treatment not in (Treatment.BLURRED, Treatment.REDACTED):
            return
        try:
            decoded = self._reader.decode(message)
        except (BagError, MessageError):  # the second pass counts it as unreadable
            decoded = None
        if treatment is Treatment.BLURRED:
            self._pictures[key].collect(decoded, message.stamp_ns)
        elif decoded is not None:
            self._redactor.clean(decoded)

    def anonymize(self, message: BagMessage) -> bytes | None:
        """Second pass: return the bytes to write, or None to leave the message out."""
        key = (message.topic, message.type_name)
        treatment, _ = self._treatments[key]
        counts = self._counts[key]
        if treatment is Treatment.DROPPED:
            return None
        counts["messages"] += 1
        try:
            data = self._change_message(key, treatment, message)
        except (PictureFormatError, BagError, MessageError):
            counts["unreadable"] += 1
            return None
        counts["written"] += data is not None
        counts["changed"] += data is not None and data != message.data
        return data

    def report(self, copy: str) -> AnonymityReport:
        """Report the treatment of each topic."""
        reports = []
        for key, topic in self._topics.items():
            treatment, why = self._treatments[key]
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
            made=copy,
            topics=tuple(sorted(reports, key=lambda report: (report.topic, report.type_name))),
            faces_were_looked_for=self._has_face_finder,
            warnings=tuple(_list_warnings(reports, has_face_finder=self._has_face_finder)),
        )

    def _change_message(self, key: tuple[str, str], treatment: Treatment, message: BagMessage) -> bytes | None:
        pictures = self._pictures.get(key)
        cut_lengths: list[int] = []
        try:
            decoded = self._reader.decode(message, cut_lengths.append)
        except (BagError, MessageError):
            if pictures:
                pictures.skip()
            raise
        if pictures:
            changed = pictures.treat(decoded)
        elif treatment is Treatment.KEPT:
            changed = clean_texts(decoded, self._redactor.clean_text)
        else:
            changed = clean_texts(self._redactor.clean(decoded), self._redactor.clean_text)
        if changed is None:
            return None
        self._counts[key]["cut"] += bool(cut_lengths)
        if changed is decoded and not cut_lengths:
            return message.data
        return serialize(changed) if message.type_name in RECORDS else self._reader.encode(message, changed)


def _list_warnings(reports: list[TopicReport], *, has_face_finder: bool) -> list[str]:
    """List what a reader must check in the copy."""
    picture_count = sum(report.written for report in reports if report.treatment is Treatment.BLURRED)
    unchanged_count = sum(report.left for report in reports)
    kept_topics = [report.topic for report in reports if report.treatment is Treatment.KEPT]
    warnings = []
    if unchanged_count:
        warnings.append(
            f"no face was found in {unchanged_count} of {picture_count} pictures, which are left as recorded: a face "
            "may have been missed there; look through them, or blur them with --no-face blur"
        )
    if any(report.blurred_by_face for report in reports):
        warnings.append("a face may have been missed beside one that was found: look through the pictures")
    if picture_count and not has_face_finder:
        warnings.append("no face detector is installed, so every picture is blurred as a whole")
    if kept_topics:
        warnings.append(
            f"{', '.join(kept_topics)} passed as recorded but for names and withheld words: check that they identify "
            "nobody"
        )
    if any(report.treatment is Treatment.REDACTED for report in reports):
        warnings.append(
            "names are found by a list and by introductions; a name said in passing may remain: read the words"
        )
    return warnings
