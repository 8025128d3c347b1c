"""Score error flags against labelled intervals: onsets and time to detection."""

from collections.abc import Sequence

from norm_core.evaluation.intervals import percentiles
from norm_core.records.record import record
from norm_core.runtime.time import ns_to_s, s_to_ns
from sim_replays.monitor_bench.event_metrics import TOLERANCES_S, OnlineScores, match_alarms, score_online
from sim_replays.monitor_bench.labelled_recording import (
    Interval,
    LabelClass,
    LabelledRecording,
    RaisedFlag,
    session_of,
)


@record
class ByClass:
    """The detection of one class of labels. Shares are in percent."""

    labels: int
    recall: dict[str, float]  # by onset tolerance, with one flag per label
    detected: float  # a flag overlaps it, however late
    time_to_detection_s: dict[str, float]


@record
class IntervalAgreement:
    """All measures over recordings, for errors only. `online` holds those of onsets."""

    online: OnlineScores
    by_class: dict[str, ByClass]


def interval_agreement(recordings: Sequence[LabelledRecording], at_s: float = 2.0) -> IntervalAgreement:
    """Compute every measure over the recordings, with `at_s` as the onset tolerance of pairs."""
    return IntervalAgreement(
        online=score_online([session_of(one) for one in recordings], None, at_s),
        by_class={
            label.value: _by_class(recordings, label, at_s)
            for label in LabelClass
            if any(one.label is label for recording in recordings for one in recording.labels)
        },
    )


def _by_class(recordings: Sequence[LabelledRecording], label: LabelClass, at_s: float) -> ByClass:
    sessions = [session_of(one, label) for one in recordings]
    count = sum(len(session.truth.events) for session in sessions)
    waits_s = []
    for one in recordings:
        for interval in (i for i in one.labels if i.label is label):
            known = [r.known_ns for r in one.raised if _lies_over(r, interval, at_s, one.end_ns)]
            if known:
                waits_s.append(ns_to_s(min(known) - interval.onset_ns))
    return ByClass(
        labels=count,
        recall={f"{t:g}": 100 * sum(len(match_alarms(s, t)) for s in sessions) / count for t in TOLERANCES_S},
        detected=100 * len(waits_s) / count,
        time_to_detection_s=percentiles(waits_s),
    )


def _lies_over(raised: RaisedFlag, interval: Interval, at_s: float, end_ns: int) -> bool:
    """Whether a flag and a label overlap, or start within the tolerance."""
    onset_ns, offset_ns = _span(raised, end_ns)
    near = abs(onset_ns - interval.onset_ns) <= s_to_ns(at_s)
    return near or (onset_ns < interval.offset_ns and interval.onset_ns < offset_ns)


def _span(raised: RaisedFlag, end_ns: int) -> tuple[int, int]:
    flag = raised.flag
    return flag.onset_ns, max(end_ns, flag.onset_ns) if flag.offset_ns is None else flag.offset_ns
