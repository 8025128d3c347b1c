"""The fragments of a damaged file: messages, and holes between them."""

from norm_core.bags.topic import BagTopic
from norm_core.records.record import record

# Stands for the topic of messages whose topic is lost.
UNKNOWN_TOPIC = "(unknown)"


@record
class Salvaged:
    """An intact message, in file order."""

    topic: BagTopic
    stamp_ns: int
    data: bytes


@record
class Hole:
    """A damaged range of a file; `lost` counts the messages known to have been there."""

    file: str
    offset: int
    length_bytes: int
    why: str
    is_chunk: bool = False
    lost: dict[str, int]


@record
class Repair:
    """A repair without loss, such as a missing index; `is_cut` if later messages may be missing."""

    file: str
    what: str
    is_cut: bool = False


Finding = Salvaged | Hole | Repair
