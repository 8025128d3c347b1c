"""Which topics of a bag hold people's words, from a recognizer of the robot's own."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from norm_core.bags.reader import BagError, BagMessage, BagReader
from norm_core.records.record import record
from norm_monitor.ears import Ears, Heard

_BOOL = "std_msgs/msg/Bool"
_LIKELY_TYPES = ("std_msgs/msg/String", "/LiveSpeech")


@record
class RecognizerTopics:
    """The texts of a recognizer, and the Bool that times them; an empty name for none."""

    texts: str = ""
    is_speaking: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The topics that are named."""
        return tuple(filter(None, (self.texts, self.is_speaking)))


def words_topics_of(bag: BagReader, named: Iterable[str], audio_topic: str = "") -> RecognizerTopics:
    """Tell named topics apart by their types.

    Raises BagError for a name that the bag lacks, for two of a kind, and beside an audio topic.
    """
    names = tuple(dict.fromkeys(named))
    if not names:
        return RecognizerTopics()
    if audio_topic:
        raise BagError("--topic, --words-topic: people's words come from sound or from texts; leave one out")
    bag.require(names)
    bools = [one.topic for one in bag.topics if one.topic in names and one.type_name == _BOOL]
    texts = [name for name in names if name not in bools]
    if len(texts) != 1 or len(bools) > 1:
        raise BagError(
            f"--words-topic: {', '.join(names)}: name one topic of texts, and at most one Bool that times them"
        )
    return RecognizerTopics(texts=texts[0], is_speaking=bools[0] if bools else "")


def take_words(ears: Ears, topics: RecognizerTopics, stored: BagMessage, message: Any) -> Iterator[Heard]:
    """Give the ears a text or the Bool; raise NotSpeechError if the message is neither."""
    if stored.topic == topics.is_speaking:
        return ears.take_is_speaking(bool(message.data), stored.stamp_ns)
    return ears.take_words(message, stored.stamp_ns)


def likely_words_topics(bag: BagReader, others: Collection[str]) -> list[str]:
    """List the topics that may hold people's words, beside others that do not."""
    return [
        one.topic
        for one in bag.topics
        if one.message_count and one.topic not in others and one.type_name.endswith(_LIKELY_TYPES)
    ]
