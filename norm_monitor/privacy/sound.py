"""Find the format of sound that its messages do not state, and cut sound by who may be heard."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

from norm_core.bags.reader import BagError, BagReader
from norm_core.bags.topic import BagTopic
from norm_core.records.messages import MessageError
from norm_core.records.speech import Speaker, Utterance
from norm_monitor.senses.microphone.audio_message import decode, read_format
from norm_monitor.senses.microphone.pcm import PcmFormat, SoundError

# The type that Tactful's own microphone uses, with a stamp in its label: 16 kHz, mono, 16 bit.
_BYTES_TYPE = "std_msgs/msg/UInt8MultiArray"


def is_sound(type_name: str) -> bool:
    """Whether messages of a type hold sound, by the type names of robot packages."""
    name = type_name.rsplit("/", 1)[-1].lower()
    return "audio" in type_name.lower() and not name.endswith("info")


def find_sound_formats(reader: BagReader) -> dict[str, PcmFormat | None]:
    """Return the format of each topic of sound, as the bag states it.

    None means that messages must state it themselves. An AudioInfo is about the sound of its namespace, or about the
    only sound of the bag. If several of them disagree, none counts.
    """
    info_topics = [topic for topic in reader.topics if topic.type_name.endswith("/AudioInfo")]
    info_namespaces = {_namespace_of(topic) for topic in info_topics}
    sound_topics = [
        topic
        for topic in reader.topics
        if is_sound(topic.type_name) or (topic.type_name == _BYTES_TYPE and _namespace_of(topic) in info_namespaces)
    ]
    formats: dict[str, PcmFormat | None] = {}
    for topic in sound_topics:
        own_infos = [info for info in info_topics if _namespace_of(info) == _namespace_of(topic)]
        if not own_infos and len(sound_topics) == 1:
            own_infos = info_topics
        own_formats = {pcm_format for info in own_infos for pcm_format in _read_formats(reader, info)}
        formats[topic.topic] = own_formats.pop() if len(own_formats) == 1 else None
    return formats | {topic.topic: PcmFormat() for topic in reader.topics if _is_stamped_sound(reader, topic)}


def _namespace_of(topic: BagTopic) -> str:
    return topic.topic.rpartition("/")[0]


def _read_formats(reader: BagReader, topic: BagTopic) -> Iterator[PcmFormat]:
    """Yield the formats that the messages of an AudioInfo topic state."""
    for message in reader.messages([topic.topic]):
        with suppress(BagError, MessageError, SoundError):
            yield read_format(reader.decode(message), PcmFormat())


def _is_stamped_sound(reader: BagReader, topic: BagTopic) -> bool:
    """Whether a topic of bytes carries the sound of Tactful's own microphone."""
    if topic.type_name != _BYTES_TYPE:
        return False
    with suppress(BagError, SoundError):
        first = next(iter(reader.messages([topic.topic])), None)
        return first is not None and decode(reader.decode(first), PcmFormat()).stamp_ns is not None
    return False


def find_audible_spans(utterances: Iterable[Utterance], voices: Collection[str]) -> list[tuple[int, int]]:
    """Find the spans where the robot or people with these ids speak alone. Unlabelled voices count as others."""
    spans: list[tuple[int, int]] = []
    others: list[tuple[int, int]] = []
    for utterance in utterances:
        is_audible = utterance.speaker is Speaker.ROBOT or (utterance.speaker_id and utterance.speaker_id in voices)
        (spans if is_audible else others).append((utterance.start_ns, utterance.end_ns))
    for other_start, other_end in others:
        halves = (((start, min(end, other_start)), (max(start, other_end), end)) for start, end in spans)
        spans = [(start, end) for half in halves for start, end in half if start < end]
    return _join_spans(spans)


def _join_spans(spans_ns: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join spans that touch or overlap."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans_ns):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined
