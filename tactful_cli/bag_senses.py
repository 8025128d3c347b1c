"""Choose what the monitor hears and sees of a bag, for the verbs that run it."""

from collections.abc import Callable, Iterable

from norm_core.bags.reader import BagReader
from norm_monitor.senses.speech.hearing import HearingConfig
from norm_monitor.senses.speech.segmenter import SegmentConfig
from norm_monitor.senses.speech.whisper import Whisper, WhisperConfig
from sim_replays.drivers.bag_driver import BagSenses
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
    if topic:
        check_audio_topic(bag, topic, hearing.stated)
    elif not any(summary.type_name.endswith("/Utterance") for summary in bag.topics):
        topic = only_audio_topic(bag, hearing.stated) if audio_topics(bag, hearing.stated) else ""
    bag.require(list(robot_topics))
    return BagSenses(bag, hearing, load(hearing.whisper) if topic else None, topic, robot_topics)
