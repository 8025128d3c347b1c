"""Run the senses and the monitor on a bag without ROS, with the same records and flags as the nodes."""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from norm_core.bags.reader import BagError, BagMessage, BagReader
from norm_core.health.health_log import HealthLog
from norm_core.records.episode import Episode, Query
from norm_core.records.flag import SocialFlag
from norm_core.records.frame import Frame
from norm_core.records.messages import MessageError, message_type
from norm_core.records.presence import Presence
from norm_core.records.record import record
from norm_core.records.speech import RobotSpeech, Utterance
from norm_core.records.status import Health
from norm_core.runtime.time import NS_PER_MS, ReplayClock
from norm_core.streams.watermarks import FRAMES, PRESENCE, UTTERANCES
from norm_monitor.assessment.fusion import NoteClosed
from norm_monitor.assessment.fusion_config import FusionConfig
from norm_monitor.context.meaning import EncoderMatcher
from norm_monitor.ears import Ears, HeardRecord, describe_late_sound
from norm_monitor.eyes import Eyes
from norm_monitor.monitor import Monitor, MonitorConfig
from norm_monitor.replay.judge_stand_in import Attend, attend_nothing
from norm_monitor.senses.camera.faults import IMAGE_TYPES
from norm_monitor.senses.camera.picture import make_picture, parse_picture
from norm_monitor.senses.faces.finder import FaceFinder, FaceWeightsMissingError
from norm_monitor.senses.microphone.pcm import SoundError
from norm_monitor.senses.people.adapter import PeopleAdapter, PeopleConfig
from norm_monitor.senses.robot_voice.robot_messages import NotRobotSpeechError, expand_topics
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from norm_monitor.senses.speech.external_recognizer import NotSpeechError
from norm_monitor.senses.speech.recognition import Recognizer
from norm_monitor.senses.speech.silence_marks import SilenceMarks
from norm_monitor.senses.speech.voices import VOICE_TEXTS, VOICE_TOPICS
from norm_monitor.windows.cutter import Record

_BOOL = "std_msgs/msg/Bool"
_LIKELY_TYPES = ("std_msgs/msg/String", "/LiveSpeech")

# The records on which the monitor decides.
MONITORED = Frame | Utterance | RobotSpeech | Presence
# How the topic of the people whom the robot tracks ends (REP-155), below the namespace of the robot, if it has one.
PERSONS = "/humans/persons/tracked"
# The transforms of moving and of fixed frames.
TRANSFORMS = "/tf"
STATIC_TRANSFORMS = "/tf_static"
_ANCHOR = re.compile(r"/humans/persons/(\w+)/anchor_frame")


@record
class RecognizerTopics:
    """The topic of a recognizer's texts and of the Bool that times them; an empty name for none.

    Or the topics of voices and their owners in the namespace `humans`; then `texts` contains {} for the id of a voice.
    """

    texts: str = ""
    is_speaking: str = ""
    humans: str = ""
    of_voices: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The topics that are named."""
        return self.of_voices or tuple(filter(None, (self.texts, self.is_speaking)))


def sort_words_topics(bag: BagReader, named: Iterable[str], audio_topic: str = "") -> RecognizerTopics:
    """Sort named topics by their types. The name of a namespace of humans (REP-155) stands for all its voices.

    Raises BagError for a name that the bag lacks, for two of a kind, and beside an audio topic.
    """
    names = tuple(dict.fromkeys(named))
    if not names:
        return RecognizerTopics()
    if audio_topic:
        raise BagError("--topic, --words-topic: people's words come from sound or from texts; leave one out")
    of_voice = re.compile(rf"{re.escape(names[0])}/(?:{VOICE_TOPICS})")
    of_voices = tuple(topic.topic for topic in bag.topics if of_voice.fullmatch(topic.topic))
    if of_voices and len(names) == 1:
        return RecognizerTopics(texts=f"{names[0]}/{VOICE_TEXTS}", humans=names[0], of_voices=of_voices)
    bag.check_topics(names)
    bools = [topic.topic for topic in bag.topics if topic.topic in names and topic.type_name == _BOOL]
    texts = [name for name in names if name not in bools]
    if len(texts) != 1 or len(bools) > 1:
        raise BagError(
            f"--words-topic: {', '.join(names)}: name one topic of texts, and at most one Bool that times them"
        )
    return RecognizerTopics(texts=texts[0], is_speaking=bools[0] if bools else "")


def take_words(ears: Ears, topics: RecognizerTopics, stored: BagMessage, message: Any) -> Iterable[HeardRecord]:
    """Pass a text, a Bool or the owner of a voice to the ears. Raises NotSpeechError for any other message."""
    if topics.of_voices:
        return ears.take_voice(message, stored.stamp_ns, stored.topic.removeprefix(f"{topics.humans}/"))
    if stored.topic == topics.is_speaking:
        ears.take_is_speaking(bool(message.data), stored.stamp_ns)
        return []
    return ears.take_words(message, stored.stamp_ns)


def find_likely_words_topics(bag: BagReader, others: Collection[str]) -> list[str]:
    """List the topics that may hold people's words, beside others that do not."""
    return [
        topic.topic
        for topic in bag.topics
        if topic.message_count and topic.topic not in others and topic.type_name.endswith(_LIKELY_TYPES)
    ]


def make_replay_monitor(
    sources: Iterable[str],
    clock: ReplayClock,
    fusion: FusionConfig | None = None,
    *,
    calls_per_hour: float = 0.0,
    cues: Iterable[str] = (),
    note_closed: NoteClosed | None = None,
) -> Monitor:
    """Create the shipped monitor with windows that wait for all records of a bag, however late."""
    config = MonitorConfig.for_replay(sources, calls_per_hour=calls_per_hour, fusion=fusion, cues=cues)
    return Monitor(config, config.table(), EncoderMatcher.shipped(), clock, note_closed=note_closed)


def find_robot_topics(bag: BagReader, named: Iterable[str]) -> frozenset[str]:
    """Return a bag's topics about the robot's speech: named topics and actions, or by default those of RobotSpeech.

    Raises BagError for a name that the bag lacks.
    """
    topics = expand_topics(named, {topic.topic for topic in bag.topics})
    bag.check_topics(topics)
    speech_type = message_type(RobotSpeech)
    return frozenset(topics or (topic.topic for topic in bag.topics if topic.type_name == speech_type))


class BagSenses:
    """The senses' records of a bag: from its sound and images, or from the records that it holds."""

    def __init__(
        self,
        bag: BagReader,
        hearing: HearingConfig,
        recognizer: Recognizer | None,
        audio_topic: str = "",
        robot_topics: Iterable[str] = (),
        *,
        words_topics: Iterable[str] = (),
        robot_offset_ms: int = 0,
    ) -> None:
        """Prepare the senses. Without a recognizer or an audio topic, utterances come from the bag.

        `words_topics` name the topics of the robot's own recognizer. `robot_topics`, which may name actions, hold the
        robot's speech; default: the topics of RobotSpeech. `robot_offset_ms` is added to its stamps.
        """
        self.health_log = HealthLog()
        self._bag = bag
        self._types = {topic.topic: topic.type_name for topic in bag.topics if topic.message_count}
        self._audio_topic = audio_topic if recognizer else ""
        self._robot_topics = find_robot_topics(bag, robot_topics)
        self._words = sort_words_topics(bag, words_topics, audio_topic)
        camera_topic = next((name for name, type_name in self._types.items() if type_name in IMAGE_TYPES), "")
        self._ears = Ears(
            hearing, self.health_log, recognizer, audio_topic, robot_offset_ns=robot_offset_ms * NS_PER_MS
        )
        if self._words.texts:
            self._ears.expect_words(self._words.texts)
        self._marks = SilenceMarks("utterances")  # for recorded utterances without silence marks
        self._camera_topic = "" if self._find_topics(Presence) else camera_topic
        finder = self._load_finder() if self._camera_topic else None
        self._eyes = Eyes(camera_topic, self.health_log, finder=finder)
        tracked = (
            "" if self._find_topics(Presence) else next((name for name in self._types if name.endswith(PERSONS)), "")
        )
        self._people = PeopleAdapter(PeopleConfig(), tracked)
        self._namespace = tracked.removesuffix(PERSONS)
        self._people_topics = {name for name in self._types if tracked and self._is_about_people(name)}

    def _is_about_people(self, topic: str) -> bool:
        name = topic.removeprefix(self._namespace)
        return name in {PERSONS, TRANSFORMS, STATIC_TRANSFORMS} or bool(_ANCHOR.fullmatch(name))

    def _load_finder(self) -> FaceFinder | None:
        try:
            return FaceFinder()
        except FaceWeightsMissingError as error:
            self.health_log.raise_issue("faces", Health.DEGRADED, f"camera: no faces are detected, because {error}")
            return None

    @property
    def remarks(self) -> tuple[str, ...]:
        """Describe faults of the messages that still hold at the end, or that make times uncertain."""
        remarks = list(self.health_log.reasons)
        late = describe_late_sound(self._audio_topic)
        if any(counter.name == "audio_stalls" for counter in self.health_log.counters) and late not in remarks:
            remarks.append(late)
        return tuple(remarks)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that windows can wait for."""
        there = {
            FRAMES: self._camera_topic or self._find_topics(Frame),
            PRESENCE: self._eyes.has_presence or self._find_topics(Presence),
            UTTERANCES: self._audio_topic or self._words.names or self._find_topics(Utterance),
        }
        return tuple(source for source, topics in there.items() if topics)

    @property
    def topics(self) -> frozenset[str]:
        """The topics that the senses read."""
        names = [name for type_ in (Presence, Frame, Query, Episode) for name in self._find_topics(type_)]
        utterance_topics = (
            [self._audio_topic] if self._audio_topic else self._words.names or self._find_topics(Utterance)
        )
        camera = [self._camera_topic] if self._camera_topic else []
        return frozenset((*names, *utterance_topics, *camera, *self._robot_topics, *self._people_topics))

    def records(self) -> Iterator[tuple[int, Record]]:
        """Yield each record with the bag time at which it was available, in that order."""
        utterance_topics = [] if self._audio_topic or self._words.names else self._find_topics(Utterance)
        utterances, has_marks = self._read_utterances(utterance_topics) if utterance_topics else ([], True)
        now_ns = 0
        for stored in self._bag.messages(self.topics.difference(utterance_topics)):
            now_ns = stored.stamp_ns
            yield from ((now_ns, edge) for edge in self._ears.advance(now_ns))
            while utterances and utterances[0][0] <= now_ns:
                yield utterances.pop(0)
            yield from ((now_ns, sensed) for sensed in self._sense(stored))
            if not has_marks:
                quiet_ns = min([now_ns, *(utterance.start_ns for _, utterance in utterances)])
                yield from ((now_ns, mark) for mark in self._marks.mark(quiet_ns))
        for at_ns, utterance in utterances:
            yield max(now_ns, at_ns), utterance
        yield from ((now_ns, utterance) for utterance in self._ears.end_input())

    def _read_utterances(self, topics: list[str]) -> tuple[list[tuple[int, Utterance]], bool]:
        """Read the utterances: in bag order if silence marks are among them, otherwise each at its end."""
        stored = [(message.stamp_ns, self._bag.decode(message)) for message in self._bag.messages(topics)]
        has_marks = any(not utterance.final for _, utterance in stored)
        spoken = stored if has_marks else [(utterance.end_ns, utterance) for _, utterance in stored]
        return sorted(spoken, key=lambda pair: pair[0]), has_marks

    def _sense(self, stored: BagMessage) -> Iterator[Record]:
        if stored.topic == self._audio_topic:
            try:
                yield from self._ears.take_audio(self._bag.decode(stored), stored.stamp_ns)
            except SoundError as error:
                self._report_unused(stored.topic, error)
        elif stored.topic == self._camera_topic:
            is_compressed = stored.type_name.endswith("/CompressedImage")
            picture = parse_picture(stored.data, compressed=is_compressed)
            yield from self._eyes.take(picture or make_picture(self._bag.decode(stored)))
        elif stored.topic in self._people_topics:
            yield from self._track_people(stored)
        elif stored.topic in self._words.names:
            yield from self._hear_words(stored)
        elif stored.topic in self._robot_topics:
            yield from self._hear_robot(stored)
        else:
            yield self._bag.decode(stored)

    def _report_unused(self, topic: str, error: Exception) -> None:
        self.health_log.raise_issue(
            f"messages on {topic}", Health.DEGRADED, f"{topic}: a message was not used: {error}"
        )

    def _hear_words(self, stored: BagMessage) -> Iterator[Record]:
        try:
            yield from take_words(self._ears, self._words, stored, self._bag.decode(stored))
        except (NotSpeechError, MessageError, BagError) as error:
            self._report_unused(stored.topic, error)

    def _hear_robot(self, stored: BagMessage) -> Iterator[Record]:
        try:
            message = self._bag.decode(stored)
            yield from self._ears.take_robot_speech(message, stored.stamp_ns, stored.topic)
        except (NotRobotSpeechError, SoundError, MessageError, BagError) as error:
            self.health_log.count("messages_not_robot_speech")
            self._report_unused(stored.topic, error)

    def _track_people(self, stored: BagMessage) -> list[Presence]:
        message = self._bag.decode(stored)
        name = stored.topic.removeprefix(self._namespace)
        if name == PERSONS:
            return self._people.ids(message, stored.stamp_ns)
        if anchored := _ANCHOR.fullmatch(name):
            self._people.anchor(anchored.group(1), message)
            return []
        return self._people.transforms(message, static=name == STATIC_TRANSFORMS)

    def _find_topics(self, type_: type[Any]) -> list[str]:
        return [name for name, type_name in self._types.items() if type_name == message_type(type_)]


def feed_monitor(
    records: Iterable[tuple[int, Record]], monitor: Monitor, clock: ReplayClock, attend: Attend = attend_nothing
) -> Iterator[tuple[int, Record | SocialFlag]]:
    """Yield each timed record, followed by the flag states that it and a judge caused, each with its time."""
    for now_ns, sensed in records:
        clock.advance_to(max(now_ns, clock.now_ns()))
        yield now_ns, sensed
        if isinstance(sensed, MONITORED):
            for flag in (*monitor.take(sensed), *attend(monitor)):
                yield now_ns, flag
    for flag in (*monitor.end_input(), *attend(monitor), *monitor.close_flags()):
        yield clock.now_ns(), flag
