"""What taking messages out of a damaged file yields: messages, and holes where there were some."""

from norm_core.bags.topic import BagTopic
from norm_core.records.record import record

# Stands for the topic of messages whose topic the file does not say any more.
UNKNOWN_TOPIC = "(unknown)"


@record
class Salvaged:
    """A message that is whole, in the order in which the file holds it."""

    topic: BagTopic
    stamp_ns: int
    data: bytes


@record
class Hole:
    """A stretch of a file that gives nothing, or less than it held; lost counts what is known to have been there."""

    file: str
    offset: int
    length_bytes: int
    why: str
    is_chunk: bool = False
    lost: dict[str, int]


@record
class Repair:
    """Something wrong of which no message was lost, as a missing index; is_cut where later ones may be missing."""

    file: str
    what: str
    is_cut: bool = False


Finding = Salvaged | Hole | Repair
