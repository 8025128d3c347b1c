"""The fragments of a damaged file, messages and the holes between them, and the report that counts them."""

from collections import Counter

from norm_core.bags.storage import Listing
from norm_core.bags.topic import BagTopic
from norm_core.records.record import record

MAX_REPORTED = 100  # the most holes and gaps in the report; all are counted
# Stands for the topic of messages whose topic is lost.
UNKNOWN_TOPIC = "(unknown)"


@record
class SalvagedMessage:
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


Fragment = SalvagedMessage | Hole | Repair


@record
class LostTime:
    """Two neighbouring messages around a loss; None is an edge of the recording."""

    after_ns: int | None
    before_ns: int | None


@record
class BagRecoveryReport:
    """The result of a recovery.

    `lost_by_topic` is a lower bound, from the source in `lost_known_from`. With `is_cut`, more messages may be missing.
    """

    bag: str
    made: str
    size_bytes: int
    messages: int
    messages_by_topic: dict[str, int]
    lost_by_topic: dict[str, int]
    lost_known_from: str
    lost_bytes: int
    chunks_damaged: int
    is_cut: bool
    first_ns: int | None
    last_ns: int | None
    hole_count: int
    holes: tuple[Hole, ...]
    lost_times: tuple[LostTime, ...]
    repairs: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether no loss is known."""
        return not (self.hole_count or self.lost_by_topic or self.is_cut)


class FragmentCounter:
    """Count fragments in file order."""

    def __init__(self, listing: Listing) -> None:
        self.messages = 0
        self._promised = listing.promised
        self._by_topic: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()
        self._stated: Counter[str] | None = Counter()
        self._holes: list[Hole] = []
        self._hole_count = self._lost_bytes = self._chunks = 0
        self._repairs = list(listing.notes)
        self._is_cut = False
        self._bounds: tuple[int, int] | None = None
        self._previous_ns: int | None = None
        self._times: list[LostTime] = []
        self._is_torn = False

    def add(self, fragment: Fragment) -> None:
        """Count one fragment."""
        match fragment:
            case SalvagedMessage():
                self._add_message(fragment.topic.topic, fragment.stamp_ns)
            case Hole():
                self._hole_count += 1
                self._lost_bytes += fragment.length_bytes
                self._chunks += fragment.is_chunk
                self._is_torn = True
                self._lost.update(fragment.lost)
                if len(self._holes) < MAX_REPORTED:
                    self._holes.append(fragment)
            case Repair():
                self._repairs.append(f"{fragment.file} {fragment.what}")
                self._is_cut |= fragment.is_cut

    def add_stated(self, counts: dict[str, int] | None) -> None:
        """Add the message counts that a file states, by topic; None if it states none."""
        if counts is None or self._stated is None:
            self._stated = None
        else:
            self._stated.update(counts)

    @property
    def is_damaged(self) -> bool:
        """Whether any fragment so far was damaged or truncated."""
        return bool(self._hole_count) or self._is_cut

    def reason_for_no_messages(self) -> str:
        """Return the reason why no message was found."""
        return "; ".join(f"{hole.file} {hole.why}" for hole in self._holes[:3]) or "its files hold no message"

    def recovery(self, bag: str, made: str, size_bytes: int) -> BagRecoveryReport:
        """Return the report on a finished recovery."""
        lost, known_from = self._known_lost()
        self._tear(None)
        return BagRecoveryReport(
            bag=bag,
            made=made,
            size_bytes=size_bytes,
            messages=self.messages,
            messages_by_topic=dict(sorted(self._by_topic.items())),
            lost_by_topic=dict(sorted(lost.items())),
            lost_known_from=known_from,
            lost_bytes=self._lost_bytes,
            chunks_damaged=self._chunks,
            is_cut=self._is_cut,
            first_ns=self._bounds[0] if self._bounds else None,
            last_ns=self._bounds[1] if self._bounds else None,
            hole_count=self._hole_count,
            holes=tuple(self._holes),
            lost_times=tuple(self._times),
            repairs=tuple(self._repairs),
        )

    def _add_message(self, topic: str, stamp_ns: int) -> None:
        self.messages += 1
        self._by_topic[topic] += 1
        first_ns, last_ns = self._bounds or (stamp_ns, stamp_ns)
        self._bounds = min(first_ns, stamp_ns), max(last_ns, stamp_ns)
        self._tear(stamp_ns)
        self._previous_ns = stamp_ns

    def _tear(self, stamp_ns: int | None) -> None:
        if self._is_torn and len(self._times) < MAX_REPORTED:
            self._times.append(LostTime(after_ns=self._previous_ns, before_ns=stamp_ns))
        self._is_torn = False

    def _known_lost(self) -> tuple[dict[str, int], str]:
        expected, known_from = self._promised, "metadata.yaml"
        if not expected and self._stated:
            expected, known_from = self._stated, "the counts in the files"
        if not expected:
            known_from = "the indexes of damaged chunks, or gaps in row numbers" if self._lost else "nothing"
            return self._lost, known_from
        return Counter(expected) - self._by_topic, known_from
