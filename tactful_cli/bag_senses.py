"""Choose what the monitor hears and sees of a bag, for the verbs that run it."""

from collections.abc import Callable, Iterable, Sequence

from norm_core.bags.reader import BagReader
from norm_core.runtime.watermarks import UTTERANCES
from norm_monitor.monitor import ROBOT_MISSING, Monitor
from norm_monitor.senses.robot_voice.robot_messages import is_likely_type
from norm_monitor.senses.speech.audio_front_end import HearingConfig
from norm_monitor.senses.speech.segmenter import SegmentConfig
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from sim_replays.drivers.bag_driver import BagSenses, likely_words_topics, robot_topics_of
from tactful_cli.hear import audio_topics, check_audio_topic, only_audio_topic


def senses_of(
    bag: BagReader,
    topic: str,
    whisper: WhisperConfig,
    robot_topics: Iterable[str] = (),
    *,
    words_topics: Sequence[str] = (),
    sensor_offsets: str = "",
    load: Callable[[WhisperConfig], Whisper] = Whisper,
) -> BagSenses:
    """Choose a bag's senses: the words of `words_topics`, or its utterances if no topic is named, or its sound, if any.

    Raises BagError for a topic that is no audio, or where the audio topic is ambiguous.
    """
    hearing = HearingConfig(segments=SegmentConfig(partial_every_s=0), whisper=whisper)
    named = tuple(robot_topics)
    robot_topics = robot_topics_of(bag, named)
    sounds = audio_topics(bag, hearing.stated)
    if topic:
        check_audio_topic(bag, topic, hearing.stated)
    elif (
        not words_topics
        and not any(summary.type_name.endswith("/Utterance") for summary in bag.topics)
        and not robot_topics.issuperset(sounds)
    ):
        topic = only_audio_topic(bag, hearing.stated, robot_topics)
    has_sound = topic or not robot_topics.isdisjoint(sounds)
    recognizer = load(hearing.whisper) if has_sound else None
    return BagSenses(bag, hearing, recognizer, topic, named, words_topics=words_topics, sensor_offsets=sensor_offsets)


def remarks_of(bag: BagReader, senses: BagSenses, monitor: Monitor) -> tuple[str, ...]:
    """Say what was wrong with a bag's messages, and of whom nothing is heard."""
    remarks = list(senses.health_log.reasons)
    if UTTERANCES not in senses.sources:
        remarks.append(explain_missing_words(bag, senses))
    if not monitor.hears_robot:
        remarks.append(_explain_missing_robot(bag, senses))
    return tuple(remarks)


def explain_missing_words(bag: BagReader, senses: BagSenses) -> str:
    """Say that nothing is heard of people, and which topics of the bag may hold their words."""
    likely = likely_words_topics(bag, senses.topics)
    remedy = "record the microphone or the texts of the robot's recognizer"
    if likely:
        remedy = f"name the topic of the robot's recognizer with --words-topic (as {' or '.join(likely)})"
    return f"people's words: there are none in this bag; {remedy}"


def _explain_missing_robot(bag: BagReader, senses: BagSenses) -> str:
    """Say that nothing is heard of the robot, and which topics of the bag may tell its speech."""
    others = senses.topics
    likely = [
        one.topic
        for one in bag.topics
        if one.message_count and one.topic not in others and is_likely_type(one.type_name)
    ]
    such = f" (as {' or '.join(likely)})" if likely else ""
    return f"robot speech: {ROBOT_MISSING} with --robot-topic{such}"
