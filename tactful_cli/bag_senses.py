"""Choose what the monitor hears and sees of a bag, for the verbs that run it."""

from collections.abc import Callable, Iterable

from norm_core.bags.reader import BagReader
from norm_monitor.monitor import ROBOT_MISSING
from norm_monitor.senses.robot_voice.robot_topics import is_likely_type
from norm_monitor.senses.speech.hearing import HearingConfig
from norm_monitor.senses.speech.segmenter import SegmentConfig
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from sim_replays.drivers.bag_driver import BagSenses, robot_topics_of
from tactful_cli.hear import audio_topics, check_audio_topic, only_audio_topic


def senses_of(
    bag: BagReader,
    topic: str,
    whisper: WhisperConfig,
    robot_topics: Iterable[str] = (),
    load: Callable[[WhisperConfig], Whisper] = Whisper,
) -> BagSenses:
    """Choose a bag's senses: its utterances if it has any and no topic is named, otherwise its sound, if any.

    Raises BagError for a topic that is no audio, or where the audio topic is ambiguous.
    """
    hearing = HearingConfig(segments=SegmentConfig(partial_every_s=0), whisper=whisper)
    robot_topics = robot_topics_of(bag, robot_topics)
    sounds = audio_topics(bag, hearing.stated)
    if topic:
        check_audio_topic(bag, topic, hearing.stated)
    elif not any(summary.type_name.endswith("/Utterance") for summary in bag.topics) and not robot_topics.issuperset(
        sounds
    ):
        topic = only_audio_topic(bag, hearing.stated, robot_topics)
    has_sound = topic or not robot_topics.isdisjoint(sounds)
    return BagSenses(bag, hearing, load(hearing.whisper) if has_sound else None, topic, robot_topics)


def explain_missing_robot(bag: BagReader) -> str:
    """Say that nothing is heard of the robot, and which topics of the bag may tell its speech."""
    likely = [one.topic for one in bag.topics if one.message_count and is_likely_type(one.type_name)]
    such = f" (as {' or '.join(likely)})" if likely else ""
    return f"robot speech: {ROBOT_MISSING} with --robot-topic{such}"
