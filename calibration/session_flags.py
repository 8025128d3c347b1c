"""The errors that coders marked in a session, and what the monitor would flag there at each probability."""

from collections.abc import Sequence
from dataclasses import field

from norm_core.evaluation.event_matching import match_events
from norm_core.records.flag import Attribute
from norm_core.records.record import record
from norm_core.runtime.time import s_to_ns
from sim_replays.monitor_bench.event_metrics import AT_S

TOLERANCE_NS = s_to_ns(AT_S)


@record
class Bars:
    """The probability from which an error is flagged, by attribute."""

    rest: float
    by_attribute: dict[Attribute, float] = field(default_factory=dict)

    def of(self, attribute: Attribute) -> float:
        """Return the threshold of an attribute."""
        return self.by_attribute.get(attribute, self.rest)


@record
class RaisedError:
    """An error that the monitor would flag if its probability sufficed."""

    onset_ns: int
    probability: float
    attributes: tuple[Attribute, ...]


@record
class LabelledError:
    """An error that coders marked; without knowledge of its attribute it has all of them."""

    onset_ns: int
    attributes: tuple[Attribute, ...]


@record
class LabelledSession:
    """One session: its length, its labelled errors, and the errors that the monitor raises from any probability."""

    name: str
    hours: float
    errors: tuple[LabelledError, ...]
    raised: tuple[RaisedError, ...]
    contested_ns: tuple[int, ...] = ()  # where coders disagree; a flag there is neither right nor false

    def verdicts(self, bars: Bars | None = None) -> list[tuple[RaisedError, bool]]:
        """Return what is flagged from the bars on, likeliest first, and whether a label bears it out."""
        flagged = [
            RaisedError(onset_ns=one.onset_ns, probability=one.probability, attributes=named)
            for one in sorted(self.raised, key=lambda one: (-one.probability, one.onset_ns))
            if (named := tuple(a for a in one.attributes if bars is None or one.probability >= bars.of(a)))
        ]
        # Likeliest first, so that what is right at strict bars stays right at laxer ones.
        onsets_ns = [one.onset_ns for one in flagged], [one.onset_ns for one in self.errors]
        matches = match_events(
            *onsets_ns,
            TOLERANCE_NS,
            lambda i, j: bool(set(flagged[i].attributes) & set(self.errors[j].attributes)),
        )
        right = {i for i, _ in matches.pairs}
        return [
            (one, place in right)
            for place, one in enumerate(flagged)
            if place in right or not any(abs(one.onset_ns - at_ns) <= TOLERANCE_NS for at_ns in self.contested_ns)
        ]


@record
class Counts:
    """What is flagged in one session."""

    hours: float
    false: int
    right: int
    labelled: int


def count_session(session: LabelledSession, bars: Bars) -> Counts:
    """Count the false and the right flags of a session."""
    verdicts = [is_right for _, is_right in session.verdicts(bars)]
    right = sum(verdicts)
    return Counts(hours=session.hours, false=len(verdicts) - right, right=right, labelled=len(session.errors))


def total(counts: Sequence[Counts]) -> tuple[int, int, int, float]:
    """Return the false and right flags, the labelled errors, and the hours of all sessions."""
    return (
        sum(one.false for one in counts),
        sum(one.right for one in counts),
        sum(one.labelled for one in counts),
        sum(one.hours for one in counts),
    )
