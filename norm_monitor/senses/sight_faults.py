"""What can be wrong with a camera's messages: how each is counted, why it happens and what mends it."""

from collections import Counter as Tally
from enum import StrEnum

from norm_core.record import record
from norm_core.status import Counter


class SightFault(StrEnum):
    STAMP_GAP = "stamp_gaps"
    MESSAGE_LOST = "messages_lost"
    DUPLICATE = "duplicate_stamps"
    REORDERED = "reordered_stamps"
    JUMPED_BACK = "stamps_jumped_back"
    JUMPED_FORWARD = "stamps_jumped_forward"
    DECODE_FAILED = "decode_failures"
    ZERO_SIZE = "zero_size_images"
    UNKNOWN_ENCODING = "unknown_encodings"
    SOURCE_CHANGED = "source_changes"
    TWO_PUBLISHERS = "two_publishers"
    STALE = "stale_input"


@record
class Advice:
    cause: str
    mend: str


_LOSS = Advice(
    cause="frames are lost on the way: best-effort raw images over the default shared memory lose most of theirs",
    mend="subscribe to the compressed topic, or publish reliably",
)
ADVICE: dict[SightFault, Advice] = {
    SightFault.STAMP_GAP: _LOSS,
    SightFault.MESSAGE_LOST: _LOSS,
    SightFault.DUPLICATE: Advice(
        cause="the same stamp came twice, as from a relay or a bag played beside the camera",
        mend="end one of the two, or let the driver stamp each frame",
    ),
    SightFault.REORDERED: Advice(
        cause="stamps went back a little, as over a lossy network or from two publishers",
        mend="look for a second publisher with ros2 topic info -v",
    ),
    SightFault.JUMPED_BACK: Advice(
        cause="stamps went back far: a clock was set, or a bag began anew",
        mend="synchronise the clocks (chrony); after a bag's restart nothing need be done",
    ),
    SightFault.JUMPED_FORWARD: Advice(
        cause="stamps went forward far: a clock was set, or the camera was away",
        mend="synchronise the clocks (chrony), and look at the camera's cable and driver",
    ),
    SightFault.DECODE_FAILED: Advice(
        cause="the bytes are no whole picture: a bad cable, a full bus or a wrong step",
        mend="look at the driver's log, and lower the resolution or the rate",
    ),
    SightFault.ZERO_SIZE: Advice(cause="the driver publishes before its camera gives pictures", mend="restart it"),
    SightFault.UNKNOWN_ENCODING: Advice(
        cause="the encoding is none that is decoded here, as depth or video",
        mend="set the driver to rgb8 or bgr8, or use the compressed topic (jpeg or png)",
    ),
    SightFault.SOURCE_CHANGED: Advice(
        cause="frame_id, size or encoding changed between messages: two publishers, or a camera set anew",
        mend="give each camera a topic of its own",
    ),
    SightFault.TWO_PUBLISHERS: Advice(
        cause="more than one publisher is on the camera's topic", mend="end one, or remap it to a topic of its own"
    ),
    SightFault.STALE: Advice(
        cause="no picture has come of late: the camera or its driver has stopped, or the topic's name is another",
        mend="look at the driver, at ros2 topic hz, and at ROS_DOMAIN_ID",
    ),
}


def advise(fault: SightFault) -> str:
    """What it is, why it happens and what mends it, without figures."""
    return f"{fault.value.replace('_', ' ')}: {ADVICE[fault].cause}; {ADVICE[fault].mend}"


class SightLedger:
    """Counts faults; its size does not grow with time."""

    def __init__(self) -> None:
        self._tally: Tally[SightFault] = Tally()
        self._details: dict[SightFault, str] = {}

    def note(self, fault: SightFault, detail: str = "", by: int = 1) -> None:
        """Counts a fault and keeps its latest detail."""
        self._tally[fault] += by
        self._details[fault] = detail

    def count(self, fault: SightFault) -> int:
        return self._tally[fault]

    def counts(self) -> dict[SightFault, int]:
        return dict(self._tally)

    def counters(self) -> tuple[Counter, ...]:
        """Every fault that happened, by name."""
        return tuple(Counter(name=fault.value, count=count) for fault, count in sorted(self._tally.items()))

    def explain(self, fault: SightFault) -> str:
        """One line for a person: what, why, and what to do."""
        advice, detail = ADVICE[fault], self._details.get(fault, "")
        what = f"{fault.value.replace('_', ' ')}: {self._tally[fault]}" + (f" ({detail})" if detail else "")
        return f"{what}; {advice.cause}; {advice.mend}"
