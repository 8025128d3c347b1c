"""Find the format of sound whose messages do not state it: from a robot's profile, or from other topics of the bag."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from norm_core.bags.reader import BagError, BagReader
from norm_core.bags.topic import BagTopic
from norm_core.records.messages import MessageError
from norm_monitor.senses.microphone.audio_message import decode, format_of_info
from norm_monitor.senses.microphone.pcm import PcmFormat, SoundError

# The type that Tactful's own microphone uses, with a stamp in its label: 16 kHz, mono, 16 bit.
_BYTES = "std_msgs/msg/UInt8MultiArray"


def is_sound(type_name: str) -> bool:
    """Whether messages of a type hold sound, by the type names of robot packages."""
    name = type_name.rsplit("/", 1)[-1].lower()
    return "audio" in type_name.lower() and not name.endswith("info")


def sound_formats(reader: BagReader, stated: Mapping[str, PcmFormat]) -> dict[str, PcmFormat | None]:
    """Return the format of each topic of sound: as `stated` by topic, or else as the bag states it.

    None means that messages must state it themselves. An AudioInfo is about the sound of its namespace, or about the
    only sound of the bag. If several of them disagree, none counts.
    """
    infos = [topic for topic in reader.topics if topic.type_name.endswith("/AudioInfo")]
    beside = {_namespace(info) for info in infos}
    sounds = [
        topic
        for topic in reader.topics
        if is_sound(topic.type_name) or (topic.type_name == _BYTES and _namespace(topic) in beside)
    ]
    found: dict[str, PcmFormat | None] = {}
    for topic in sounds:
        near = [info for info in infos if _namespace(info) == _namespace(topic)] or (infos if len(sounds) == 1 else [])
        told = {each for info in near for each in _told(reader, info)}
        found[topic.topic] = told.pop() if len(told) == 1 else None
    found |= {topic.topic: PcmFormat() for topic in reader.topics if _is_stamped_sound(reader, topic)}
    there = {topic.topic for topic in reader.topics}
    return found | {name: each for name, each in stated.items() if name in there}


def _namespace(topic: BagTopic) -> str:
    return topic.topic.rpartition("/")[0]


def _told(reader: BagReader, topic: BagTopic) -> Iterator[PcmFormat]:
    for message in reader.messages([topic.topic]):
        with suppress(BagError, MessageError, SoundError):
            yield format_of_info(reader.decode(message), PcmFormat())


def _is_stamped_sound(reader: BagReader, topic: BagTopic) -> bool:
    if topic.type_name != _BYTES:
        return False
    with suppress(BagError, SoundError):
        first = next(iter(reader.messages([topic.topic])), None)
        return first is not None and decode(reader.decode(first), PcmFormat()).stamp_ns is not None
    return False
