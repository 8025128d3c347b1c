"""The labels of a session by coder, and the events of coders matched by onset."""

from collections import Counter
from collections.abc import Iterable, Sequence

from norm_core.records.flag import Attribute, Polarity
from norm_core.records.record import record
from norm_core.runtime.time import NS_PER_S, s_to_ns
from norm_monitor.session_log.labels import make_monitor_labels, sort_labels
from norm_monitor.session_log.recording import Recording
from norm_monitor.session_log.schema import CONSENSUS, MONITOR, Label
from scoring.agreement_coefficients import Tally
from scoring.event_matching import Matches, match_events

ALL, ANY = "all", "any"
# The categories of a frame.
YES = "yes"
NO = "no"


@record
class CodedSession:
    """One session's labels by coder."""

    name: str
    start_ns: int
    end_ns: int
    labels: dict[str, tuple[Label, ...]]

    @property
    def minutes(self) -> float:
        """The length of the session."""
        return (self.end_ns - self.start_ns) / NS_PER_S / 60


def collect_by_coder(recording: Recording) -> dict[str, tuple[Label, ...]]:
    """Collect the labels of the monitor, of each coder, also of one who found nothing, and of the consensus.

    Verdicts on the monitor's flags are not a coding, so they are left out.
    """
    labels: dict[str, list[Label]] = {MONITOR: list(make_monitor_labels(recording))}
    labels |= {coder: [] for coder in sorted(recording.coders - {MONITOR})}
    for label in recording.labels:
        labels[label.coder].append(label)
    return {coder: sort_labels(of_coder) for coder, of_coder in labels.items()}


def collect_sessions(recordings: Iterable[Recording]) -> list[CodedSession]:
    """Collect sessions with the labels of all coders but the consensus, which is not an independent coding."""
    return [
        CodedSession(
            name=recording.info.session,
            start_ns=recording.start_ns,
            end_ns=recording.end_ns,
            labels={coder: labels for coder, labels in collect_by_coder(recording).items() if coder != CONSENSUS},
        )
        for recording in recordings
    ]


def list_label_groups(sessions: Sequence[CodedSession], coders: Sequence[str]) -> list[tuple[str | None, str | None]]:
    """List "all", each polarity with any attribute, then each polarity and attribute that any of the coders used."""
    labels = [label for session in sessions for coder in coders for label in session.labels.get(coder, ())]
    used = {(label.polarity, label.attribute) for label in labels}
    polarities = [polarity for polarity in Polarity if any(polarity == label.polarity for label in labels)]
    return [
        (None, None),
        *((polarity.value, None) for polarity in polarities),
        *((p.value, a.value) for p in polarities for a in Attribute if (p, a) in used),
    ]


def select(labels: Sequence[Label], polarity: str | None, attribute: str | None) -> list[Label]:
    """Choose the labels of a polarity and an attribute; None: any."""
    return [x for x in labels if polarity in (None, x.polarity) and attribute in (None, x.attribute)]


def count_frames(
    session: CodedSession, coders: Sequence[str], polarity: str | None, attribute: str | None, frame_s: float
) -> Tally:
    """Count the frames by the coders with a label in them. An instant touches one frame.

    A coder who did not code the session has None.
    """
    frame_ns = s_to_ns(frame_s)
    frame_count = max(1, -(-(session.end_ns - session.start_ns) // frame_ns))
    marked: list[set[int] | None] = []
    for coder in coders:
        if coder not in session.labels:
            marked.append(None)
            continue
        touched: set[int] = set()
        for label in select(session.labels[coder], polarity, attribute):
            first = (label.start_ns - session.start_ns) // frame_ns
            last = (max(label.end_ns - 1, label.start_ns) - session.start_ns) // frame_ns
            touched.update(range(max(first, 0), min(last, frame_count - 1) + 1))
        marked.append(touched)
    return Counter(
        tuple(None if touched is None else YES if frame in touched else NO for touched in marked)
        for frame in range(frame_count)
    )


def match(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> Matches:
    """Pair as many labels as possible with equal polarity and attribute, and onsets within the tolerance."""
    return match_events(
        [label.start_ns for label in a],
        [label.start_ns for label in b],
        tolerance_ns,
        lambda i, j: (a[i].polarity, a[i].attribute) == (b[j].polarity, b[j].attribute),
        in_order=True,
    )


def match_onsets(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> Matches:
    """Pair as many labels as possible with onsets within the tolerance."""
    return match_events([x.start_ns for x in a], [x.start_ns for x in b], tolerance_ns, in_order=True)


def match_any(a: Sequence[Label], b: Sequence[Label], tolerance_ns: int) -> Matches:
    """Match like `match`, then pair the rest with any label, to show disagreements on meaning."""
    alike = match(a, b, tolerance_ns)
    others = match_onsets([a[i] for i in alike.left_a], [b[j] for j in alike.left_b], tolerance_ns)
    pairs = [*alike.pairs, *((alike.left_a[i], alike.left_b[j]) for i, j in others.pairs)]
    return Matches.of(pairs, len(a), len(b))
