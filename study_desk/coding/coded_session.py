"""Sessions as coders see them: who coded them, with which labels, and in which frames."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field, replace

from norm_core.evaluation.agreement_coefficients import Tally
from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, s_to_ns
from study_desk.coding.labels import by_coder
from study_desk.log.recording import Recording
from study_desk.log.schema import CONSENSUS, MONITOR, Label

ALL = "all"
# The categories of a frame.
YES, NO = "yes", "no"


@record
class CodedSession:
    """One session's labels by coder."""

    name: str
    start_ns: int
    end_ns: int
    labels: dict[str, tuple[Label, ...]]
    reviewed: dict[str, frozenset[str]] = field(default_factory=dict)  # for reviewers: the events with a verdict
    condition: str = ""

    @property
    def minutes(self) -> float:
        """The length of the session."""
        return (self.end_ns - self.start_ns) / NS_PER_S / 60

    @property
    def independent(self) -> tuple[str, ...]:
        """The humans who coded alone. Reviewers judged the monitor's flags, so they did not."""
        return tuple(sorted(self.labels.keys() - self.reviewed.keys() - {MONITOR}))

    @property
    def events(self) -> frozenset[str]:
        """The events that the monitor flagged."""
        return frozenset(label.event_id for label in self.labels.get(MONITOR, ()))

    def between(self, coders: Iterable[str]) -> "CodedSession | None":
        """Restrict the session to what these coders share. An event not yet reviewed is no rejection.

        Returns None where they share nothing, as when one coded alone and the other reviewed only part.
        """
        if not set(coders) <= self.labels.keys():
            return None
        events = self.events.intersection(*(self.reviewed[coder] for coder in coders if coder in self.reviewed))
        if events == self.events:
            return self
        labels = {coder: self.labels[coder] for coder in coders}
        if not labels.keys() <= {MONITOR, *self.reviewed}:
            return None
        return replace(self, labels={c: tuple(x for x in coded if x.event_id in events) for c, coded in labels.items()})


def sessions_of(recordings: Iterable[Recording], extra: dict[str, Sequence[Label]] | None = None) -> list[CodedSession]:
    """Collect sessions with the labels in their logs, and with imported labels by session name.

    The consensus is left out: it is no independent coding.
    """
    sessions = []
    for recording in recordings:
        coders = {coder: labels for coder, labels in by_coder(recording).items() if coder != CONSENSUS}
        reviewed: dict[str, set[str]] = {}
        for review in recording.reviews:
            if review.reviewer not in recording.coders:
                reviewed.setdefault(review.reviewer, set()).add(review.event_id)
        for label in (extra or {}).get(recording.info.session, ()):
            coders[label.coder] = (*coders.get(label.coder, ()), label)
        sessions.append(
            CodedSession(
                name=recording.info.session,
                start_ns=recording.start_ns,
                end_ns=recording.end_ns,
                labels=coders,
                condition=recording.info.condition,
                reviewed={reviewer: frozenset(events) for reviewer, events in reviewed.items()},
            )
        )
    return sessions


def label_groups(sessions: Sequence[CodedSession], coders: Sequence[str]) -> list[tuple[str | None, str | None]]:
    """List "all", then each polarity and attribute that any of the coders used."""
    used = {(x.polarity, x.attribute) for s in sessions for c in coders for x in s.labels.get(c, ())}
    return [(None, None), *((p.value, a.value) for p in Polarity for a in Attribute if (p, a) in used)]


def select(labels: Sequence[Label], polarity: str | None, attribute: str | None) -> list[Label]:
    """Choose the labels of a polarity and an attribute; None: any."""
    return [x for x in labels if polarity in (None, x.polarity) and attribute in (None, x.attribute)]


def frames_of(
    session: CodedSession, coders: Sequence[str], polarity: str | None, attribute: str | None, frame_s: float
) -> Tally:
    """For each frame, tell whether each coder has a label that touches it. An instant touches one frame.

    A coder who did not code the session has None.
    """
    frame_ns = s_to_ns(frame_s)
    number = max(1, -(-(session.end_ns - session.start_ns) // frame_ns))
    marked: list[set[int] | None] = []
    for coder in coders:
        if coder not in session.labels:
            marked.append(None)
            continue
        touched: set[int] = set()
        for label in select(session.labels[coder], polarity, attribute):
            first = (label.start_ns - session.start_ns) // frame_ns
            last = (max(label.end_ns - 1, label.start_ns) - session.start_ns) // frame_ns
            touched.update(range(max(first, 0), min(last, number - 1) + 1))
        marked.append(touched)
    return Counter(
        tuple(None if touched is None else YES if frame in touched else NO for touched in marked)
        for frame in range(number)
    )
